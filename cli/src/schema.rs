//! `flipwave schema`.

use crate::{Failure, output};
use flipwave_campaigns::json_schema;
use std::io::Write;

pub fn schema() -> Result<(), Failure> {
    Ok(writeln!(output::stdout(), "{:#}", json_schema())?)
}
