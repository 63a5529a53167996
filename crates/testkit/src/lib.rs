//! What tests of the whole system share: the real `webgym`, Redis and nginx as child processes, a client that
//! speaks to any tier, a look at the process table, and a node that behaves like the Python system's. Dev-only;
//! whatever cannot go on here stops its test with a message.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc,
    reason = "a test that cannot go on must stop, here and now"
)]

pub mod arguments;
mod dice;
mod eventually;
mod farm;
mod history;
pub mod hosts;
mod http;
mod invariant;
mod nginx;
mod process;
mod python_master;
mod python_node;
mod redis;
pub mod rogue;
pub mod sim_farm;
pub mod sim_model;
mod trap;
mod webgym;

pub use dice::Dice;
pub use eventually::{eventually, poll_until};
pub use farm::{DOORS, Farm, Lease, Tier};
pub use history::{Entry, History, LEDGER_LOG};
pub use http::{Http, Reply};
pub use invariant::{Slots, Watch};
pub use nginx::Nginx;
pub use process::{Browser, Process, browsers_of, connections_at, descendants, group, processes, signal};
pub use python_master::PythonMaster;
pub use python_node::{PythonNode, Trouble};
pub use redis::{REDIS_USER, Redis};
pub use trap::{Served, Trap};
pub use webgym::{Listening, Webgym};
