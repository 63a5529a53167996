//! HTTP clients with deadlines and retries: the farm's API, and chat servers that speak the OpenAI API. Knows the wire
//! formats of `proto` and nothing about runs, tasks or files of trajectories.

pub mod chat;
pub mod farm;
pub mod http;
