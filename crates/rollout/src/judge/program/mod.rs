//! Judges by programs: checks that a task carries, or a command of the user. Checks look at the page, so they run while the
//! session of the episode is still open. A check that cannot be made leaves the episode unjudged; it never counts as a
//! failed task.

mod checks;
mod command;
mod page;
mod program_judge;
mod url_match;

pub use checks::{Check, FIELD, checks_of, parse as parse_checks};
pub use page::{FarmPage, JudgedPage};
pub use program_judge::{JudgedEpisode, ProgramError, ProgramJudge};
