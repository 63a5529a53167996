//! The farm inside this process, for commands that are not given another one.

use anyhow::Context as _;
use farm::PoolOptions;
use rollout::config::Config;

/// Gives the farm the directory of the archives that the configuration records or replays.
pub(crate) fn prepare_archives(config: &Config, pool: &mut PoolOptions) -> anyhow::Result<()> {
    config.check_archive().map_err(anyhow::Error::msg)?;
    let Some(root) = config.archives_root() else { return Ok(()) };
    std::fs::create_dir_all(&root).with_context(|| format!("cannot create {}", root.display()))?;
    pool.archives = Some(root);
    Ok(())
}
