//! Mouse and keyboard, as a person would use them: trusted events through the browser's own input pipeline.

pub(crate) mod keyboard;
pub(crate) mod keys;
pub(crate) mod mouse;
