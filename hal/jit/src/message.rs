//! Messages between client and service: a byte for the kind, a four-byte length, and the contents.

use crate::Extensions;
use std::io::{self, Read, Write};

/// Maximum length of the contents, in bytes.
const MAX_LENGTH: u32 = 1 << 26;

/// Sends IR to compile.
pub fn send_request(to: &mut impl Write, ir: &str, extensions: Extensions) -> io::Result<()> {
    let kind = match extensions {
        Extensions::Avx2 => 2,
        Extensions::Avx512 => 5,
    };
    send(to, kind, ir.as_bytes())
}

/// Receives the next request. Returns `None` at the end of the stream.
pub fn receive_request(from: &mut impl Read) -> io::Result<Option<(String, Extensions)>> {
    let Some((kind, bytes)) = receive(from)? else { return Ok(None) };
    let extensions = match kind {
        2 => Extensions::Avx2,
        5 => Extensions::Avx512,
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    let ir = String::from_utf8(bytes).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    Ok(Some((ir, extensions)))
}

/// Sends object code or an error message.
pub fn send_answer(to: &mut impl Write, answer: Result<&[u8], &str>) -> io::Result<()> {
    match answer {
        Ok(object) => send(to, 0, object),
        Err(reason) => send(to, 1, reason.as_bytes()),
    }
}

/// Receives object code or an error message.
pub fn receive_answer(from: &mut impl Read) -> io::Result<Result<Vec<u8>, String>> {
    match receive(from)? {
        Some((0, object)) => Ok(Ok(object)),
        Some((_, reason)) => Ok(Err(String::from_utf8_lossy(&reason).into_owned())),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn send(to: &mut impl Write, kind: u8, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).ok().filter(|length| *length <= MAX_LENGTH);
    let length = length.ok_or(io::ErrorKind::InvalidInput)?;
    let mut message = Vec::with_capacity(bytes.len() + 5);
    message.push(kind);
    message.extend(length.to_le_bytes());
    message.extend(bytes);
    to.write_all(&message)
}

fn receive(from: &mut impl Read) -> io::Result<Option<(u8, Vec<u8>)>> {
    let mut kind = [0];
    if from.read(&mut kind)? == 0 {
        return Ok(None);
    }
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > MAX_LENGTH {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length as usize];
    from.read_exact(&mut bytes)?;
    Ok(Some((kind[0], bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_round_trip() {
        let mut wire = Vec::new();
        send_request(&mut wire, "text", Extensions::Avx512).expect("a message");
        let mut from = wire.as_slice();
        let received = receive_request(&mut from).expect("a message");
        assert_eq!(received, Some(("text".to_owned(), Extensions::Avx512)));
        assert_eq!(receive_request(&mut from).expect("the end"), None);
        for answer in [Ok(&b"object"[..]), Err("reason")] {
            let mut wire = Vec::new();
            send_answer(&mut wire, answer).expect("a message");
            let received = receive_answer(&mut wire.as_slice()).expect("a message");
            assert_eq!(received.as_deref().map_err(String::as_str), answer);
        }
    }

    #[test]
    fn truncated_or_invalid_messages_are_errors() {
        let mut wire = Vec::new();
        send_request(&mut wire, "text", Extensions::Avx2).expect("a message");
        for end in 1..wire.len() {
            assert!(receive_request(&mut &wire[..end]).is_err(), "{end}");
        }
        assert!(receive_request(&mut &[2, 255, 255, 255, 255][..]).is_err());
        assert!(receive_request(&mut &[9, 0, 0, 0, 0][..]).is_err());
        assert!(receive_answer(&mut &[][..]).is_err());
    }
}
