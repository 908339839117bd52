//! `flipwave schema`.

use crate::failure::Failure;
use crate::output;
use flipwave_campaigns::json_schema;
use std::io::Write;

pub fn schema() -> Result<(), Failure> {
    Ok(writeln!(output::stdout(), "{:#}", json_schema())?)
}
