//! WARC 1.1 files, one gzip member for each record: what a record is, how it is written and read.

pub(crate) mod digest;
pub(crate) mod http;
pub(crate) mod member;
mod reader;
mod record;

pub use reader::{Block, ReadRecord, WarcReader};
pub use record::RecordHeader;
pub(crate) use record::{encode, record_id, warc_date};

/// What a reader accepts. Everything beyond is an error or is streamed past, never kept in memory.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest block of a record that is kept in memory; a larger one is only checked.
    pub max_block: u64,
    /// The largest set of headers of a record or an HTTP message.
    pub max_header: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_block: 256 << 20, max_header: 1 << 20 }
    }
}
