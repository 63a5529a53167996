//! An archive of network traffic: what a browser asked and what it was answered, in WARC files with an index. Owns the
//! file formats (WARC, CDXJ, WACZ, HAR), the removal of secrets, and the matching of requests with recordings. Uses files
//! only: it knows no browser and no network.

mod archive;
mod check;
mod diff;
pub mod encoding;
mod error;
pub mod exchange;
mod frames;
pub mod har;
mod headers;
mod import;
pub mod index;
pub mod layout;
pub mod list;
pub mod matching;
mod recorder;
pub mod redact;
pub mod respond;
pub mod scan;
pub mod wacz;
pub mod warc;

pub use archive::{Archive, ArchiveOptions};
pub use check::{CheckReport, check};
pub use diff::{Change, Differences, diff};
pub use error::{ArchiveError, RecordProblem};
pub use exchange::{Exchange, Outcome, Request, Response};
pub use headers::Headers;
pub use import::{ImportReport, import};
pub use matching::{Answer, Cursor, Found, MatchKind, MatchRules, Miss};
pub use recorder::{Recorder, RecorderOptions, Recovered, Statistics};
pub use redact::Redaction;
