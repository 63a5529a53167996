//! The cases, by theme. Most are rows of a table; what a row cannot say is a test below its table.

mod choosing;
mod failures;
mod marks;
mod pointing;
mod reading;
mod scrolling;
mod settling;
mod typing;
mod windows;
