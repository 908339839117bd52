//! Tests of queues of PM4 packets.

use super::*;
use std::sync::atomic::AtomicU32;

/// A queue of PM4 packets in its own buffer.
struct Pm4Queue {
    address: u64,
    host: u64,
    /// Number of dwords written to the ring.
    written: u32,
}

impl Pm4Queue {
    const RING: u64 = 0;
    const STRUCTURE: u64 = PAGE;
    const RECORD: u64 = PAGE + 1024;
    /// A part of the buffer for indirect buffers and for results.
    const DATA: u64 = 2 * PAGE;
    const READ_INDEX: u64 = Pm4Queue::STRUCTURE + 128;
    const WRITE_INDEX: u64 = Pm4Queue::STRUCTURE + 56;

    fn arguments(address: u64) -> CreateQueue {
        CreateQueue {
            ring_base_address: address + Pm4Queue::RING,
            ring_size: PAGE as u32,
            read_pointer_address: address + Pm4Queue::READ_INDEX,
            write_pointer_address: address + Pm4Queue::WRITE_INDEX,
            eop_buffer_address: address + Pm4Queue::RECORD,
            eop_buffer_size: 256,
            gpu_id: GPU,
            queue_type: 0,
            ..zero()
        }
    }

    fn new(process: &Process) -> Pm4Queue {
        let buffer = allocate(process, 0x4000_0000, 3 * PAGE, GTT).unwrap();
        map(process, Call::MapMemory, buffer.handle, &[GPU]).unwrap();
        let address = buffer.va_addr;
        let host = process.machine.view(1).within(address..address + 1)[0].1;
        call(process, Call::CreateQueue, &mut Pm4Queue::arguments(address)).unwrap();
        Pm4Queue { address, host, written: 0 }
    }

    fn word(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: in the buffer, at a multiple of 4.
        unsafe { AtomicU32::from_ptr((self.host + offset) as *mut u32) }
    }

    fn read(&self, offset: u64) -> u32 {
        self.word(offset).load(Ordering::Acquire)
    }

    fn write(&self, offset: u64, dwords: &[u32]) {
        for (dword, offset) in dwords.iter().zip((offset..).step_by(4)) {
            self.word(offset).store(*dword, Ordering::Release);
        }
    }

    /// Submits dwords.
    fn submit(&mut self, dwords: &[u32]) {
        for dword in dwords {
            let offset = u64::from(self.written) * 4 % PAGE;
            self.write(Pm4Queue::RING + offset, &[*dword]);
            self.written += 1;
        }
        self.word(Pm4Queue::WRITE_INDEX).store(self.written, Ordering::Release);
    }

    /// Address of a byte of the data.
    fn data(&self, offset: u64) -> [u32; 2] {
        let address = self.address + Pm4Queue::DATA + offset;
        [address as u32, (address >> 32) as u32]
    }

    /// A packet that writes a value to the data, and signals an event unless it is 0.
    fn release(&self, offset: u64, value: u32, event: u32) -> Vec<u32> {
        let [low, high] = self.data(offset);
        let interrupt = if event == 0 { 0 } else { 2 << 24 };
        packet(0x49, &[0x514, 1 << 29 | interrupt, low, high, value, 0, event])
    }

    /// Waits until the data has a value.
    fn expect(&self, offset: u64, value: u32) {
        let start = std::time::Instant::now();
        while self.read(Pm4Queue::DATA + offset) != value {
            assert!(start.elapsed().as_secs() < 60, "no {value} at {offset:#x}");
            std::thread::yield_now();
        }
    }

    /// A packet that executes the first dwords of the data.
    fn indirect(&self, dwords: u32) -> Vec<u32> {
        let [low, high] = self.data(0);
        packet(0x3f, &[low, high, dwords | 1 << 23])
    }
}

fn packet(opcode: u32, body: &[u32]) -> Vec<u32> {
    [&[3 << 30 | (body.len() as u32 - 1) << 16 | opcode << 8], body].concat()
}

/// Waits for an event of hardware exceptions and returns its GPU.
fn exception(process: &Process, event: &CreateEvent) -> u32 {
    loop {
        if let (true, data) = wait(process, event.event_id).unwrap() {
            return data.memory_exception_data.failure.imprecise;
        }
    }
}

#[test]
fn a_wait_blocks_the_queue_until_memory_has_the_value() {
    let process = &process(1);
    let mut queue = Pm4Queue::new(process);
    let event = create_event(process, 0);
    let [low, high] = queue.data(0);
    queue.submit(&packet(0x3c, &[0x15, low, high, 7, 0xff, 4]));
    queue.submit(&queue.release(8, 9, event.event_id));
    assert!(!wait(process, event.event_id).unwrap().0);
    assert_eq!(queue.read(Pm4Queue::DATA + 8), 0);
    queue.write(Pm4Queue::DATA, &[0x107]);
    while !wait(process, event.event_id).unwrap().0 {}
    queue.expect(8, 9);
    while queue.read(Pm4Queue::READ_INDEX) != queue.written {
        std::thread::yield_now();
    }
}

#[test]
fn indirect_buffers_are_executed_in_the_order_of_the_ring() {
    let process = &process(1);
    let mut queue = Pm4Queue::new(process);
    // Registers of a handshake, another die's packet, a clock.
    let skipped = queue.release(2048, 1, 0);
    let [low, high] = queue.data(2056);
    let mut packets = packet(0x3c, &[0x43, 0xe26, 0xe27, u32::MAX, u32::MAX, 4]);
    packets.extend(packet(0x23, &[2 << 24 | skipped.len() as u32]));
    packets.extend(&skipped);
    packets.extend(packet(0x49, &[0x514, 3 << 29, low, high, 0, 0, 0]));
    packets.extend(queue.release(2064, 5, 0));
    queue.write(Pm4Queue::DATA, &packets);
    queue.submit(&queue.indirect(packets.len() as u32));
    // Padding around the end of the ring.
    queue.submit(&packet(0x10, &[0; 1010]));
    queue.submit(&queue.release(2064, 6, 0));
    queue.expect(2064, 6);
    assert_eq!(queue.read(Pm4Queue::DATA + 2048), 0, "a packet of another die");
    assert_ne!(queue.read(Pm4Queue::DATA + 2056), 0, "no clock");
}

#[test]
fn invalid_packets_are_hardware_exceptions() {
    let bodies: [fn(&Pm4Queue) -> Vec<u32>; 7] = [
        // Unknown packet type, unknown command, wrong length.
        |_| vec![0],
        |_| packet(0x77, &[0]),
        |_| packet(0x3c, &[0x15, 0, 0]),
        // A packet beyond the write index, a wait for a register that never changes.
        |_| vec![3 << 30 | 100 << 16 | 0x10 << 8, 0],
        |_| packet(0x3c, &[3, 0xe26, 0, 1, 1, 4]),
        // Endless recursion: the buffer names itself.
        |queue| {
            queue.write(Pm4Queue::DATA, &queue.indirect(4));
            queue.indirect(4)
        },
        // A predicate beyond the buffer.
        |queue| {
            queue.write(Pm4Queue::DATA, &packet(0x23, &[2 << 24 | 5]));
            queue.indirect(4)
        },
    ];
    for (index, body) in bodies.iter().enumerate() {
        let process = &process(1);
        let mut queue = Pm4Queue::new(process);
        let event = create_event(process, 3);
        let dwords = body(&queue);
        queue.submit(&dwords);
        assert_eq!(exception(process, &event), GPU, "packet {index}");
        // Nothing more is executed.
        queue.submit(&queue.release(2048, 1, 0));
        assert!(!wait(process, create_event(process, 0).event_id).unwrap().0);
        assert_eq!(queue.read(Pm4Queue::DATA + 2048), 0);
    }
}

#[test]
fn inaccessible_addresses_of_packets_are_memory_faults() {
    let far = [0x5000_0000, 0];
    let bodies = [
        packet(0x3c, &[0x15, far[0], far[1], 1, 1, 4]),
        packet(0x49, &[0x514, 1 << 29, far[0], far[1], 1, 0, 0]),
        packet(0x49, &[0x514, 2 << 29, far[0], far[1], 1, 0, 0]),
        packet(0x49, &[0x514, 3 << 29, far[0], far[1], 1, 0, 0]),
        packet(0x3f, &[far[0], far[1], 4 | 1 << 23]),
        packet(0x40, &[2 << 8 | 4, 0, 0, far[0], far[1]]),
    ];
    for body in bodies {
        let process = &process(1);
        let mut queue = Pm4Queue::new(process);
        let event = create_event(process, 8);
        queue.submit(&body);
        let data = loop {
            if let (true, data) = wait(process, event.event_id).unwrap() {
                break data.memory_exception_data;
            }
        };
        assert_eq!([data.va, data.gpu_id.into()], [u64::from(far[0]), u64::from(GPU)]);
    }
}

#[test]
fn a_queue_without_an_end_of_pipe_buffer_is_refused() {
    let process = &process(1);
    let buffer = allocate(process, 0x4000_0000, 3 * PAGE, GTT).unwrap();
    map(process, Call::MapMemory, buffer.handle, &[GPU]).unwrap();
    let create = |eop_buffer_address, eop_buffer_size| {
        let arguments = Pm4Queue::arguments(buffer.va_addr);
        let mut arguments = CreateQueue { eop_buffer_address, eop_buffer_size, ..arguments };
        call(process, Call::CreateQueue, &mut arguments)
    };
    let record = buffer.va_addr + Pm4Queue::RECORD;
    assert_eq!(create(record, 128), Ok(()));
    assert_eq!(create(record, 127), Err(Errno::INVALID));
    assert_eq!(create(record + 1, 256), Err(Errno::INVALID));
    assert_eq!(create(buffer.va_addr + 3 * PAGE - 64, 128), Err(Errno::INVALID));
    assert_eq!(create(0, 0), Err(Errno::INVALID));
}

#[test]
fn the_runtime_is_registered_without_capabilities() {
    let process = &process(1);
    let mut args = RuntimeEnable { capabilities_mask: 7, ..zero() };
    call(process, Call::RuntimeEnable, &mut args).unwrap();
    assert_eq!(args.capabilities_mask, 0);
}
