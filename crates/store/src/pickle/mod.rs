//! Writes Python objects as a pickle of protocol 2, the one `torch.save` uses. Knows the five classes of
//! `webgym.data.components` and nothing of files.

mod encode;
mod objects;

pub(crate) use encode::{Pickler, TooLong};
pub(crate) use objects::{STEP_EXTRAS, TASK_EXTRA, begin, end, trajectory};
