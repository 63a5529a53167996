//! Writes Python objects as a pickle of protocol 2, which `torch.save` uses. Knows the five classes of
//! `webgym.data.components` and nothing about files.

mod pickler;
mod trajectory;

pub(crate) use pickler::{Pickler, TextTooLong};
pub(crate) use trajectory::{STEP_EXTRAS, TASK_EXTRA, begin_file, end_file, write_trajectory};
