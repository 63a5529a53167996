//! `webgym serve`, `master`, `node` and `instance`: start a farm, print its addresses and run until a stop signal.

mod args;
mod run;

use std::{process::ExitCode, time::Duration};

use farm::{Farm, Mode, PoolOptions};

use args::ModeChoice;
pub(crate) use args::{InstanceArgs, MasterArgs, NodeArgs, ServeArgs};
pub(crate) use run::print_event;
use run::run;

use crate::parent::Parent;

/// Options of an empty pool, for a master without browsers.
fn empty_pool() -> PoolOptions {
    let none = browser::Executable { path: "none".into(), kind: browser::BrowserKind::Full };
    PoolOptions::new(0, browser::Launch::new(none))
}

pub(crate) async fn serve(mut args: ServeArgs, quiet: bool) -> anyhow::Result<ExitCode> {
    args.python.apply(&mut args.net);
    let (mode, pool) = match (args.mode, args.instances) {
        (ModeChoice::Master, None) => (Mode::Master, empty_pool()),
        (ModeChoice::Master, Some(_)) => {
            anyhow::bail!("a master has no instances; omit N with --mode master")
        }
        (_, None) => anyhow::bail!("the number of instances is missing, for example: webgym serve 8"),
        (ModeChoice::Both, Some(count)) => (Mode::Both, args.pool.options(count)?),
        (ModeChoice::Worker, Some(count)) => (Mode::Worker, args.pool.options(count)?),
    };
    if mode == Mode::Worker && args.net.redis.is_none() {
        tracing::warn!(
            "without --redis no master finds this node; pass its URL to the master with --node URL"
        );
    }
    let mut options = args.net.options(mode, pool)?;
    (options.master_port, options.node_port, options.nodes) = (args.master_port, args.node_port, args.node);
    let drain = args.net.drain_time(mode);
    let parent = Parent::watch(args.net.exit_with_parent)?;
    run(Farm::start(options).await?, drain, parent, quiet).await
}

pub(crate) async fn master(args: MasterArgs, quiet: bool) -> anyhow::Result<ExitCode> {
    let mut options = args.net.options(Mode::Master, empty_pool())?;
    (options.master_port, options.nodes) = (args.port, args.node);
    let parent = Parent::watch(args.net.exit_with_parent)?;
    run(Farm::start(options).await?, Duration::ZERO, parent, quiet).await
}

pub(crate) async fn node(args: NodeArgs, quiet: bool) -> anyhow::Result<ExitCode> {
    let mut options = args.net.options(Mode::Worker, args.pool.options(args.instances)?)?;
    options.node_port = args.port;
    let drain = args.net.drain_time(Mode::Worker);
    let parent = Parent::watch(args.net.exit_with_parent)?;
    run(Farm::start(options).await?, drain, parent, quiet).await
}

pub(crate) async fn instance(args: InstanceArgs, quiet: bool) -> anyhow::Result<ExitCode> {
    let options = args.net.options(Mode::Worker, args.pool.options(1)?)?;
    let drain = args.net.drain_time(Mode::Both);
    let parent = Parent::watch(args.net.exit_with_parent)?;
    run(Farm::start_instance(options, args.port).await?, drain, parent, quiet).await
}
