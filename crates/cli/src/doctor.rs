//! `webgym doctor`: checks everything that webgym needs from a machine. Every failed check says how to fix it.

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use browser::{Host, ObserveRequest, Options};
use clap::Args;
use farm::RedisServer;
use proto::{Command, InteractionMode};

use crate::browser_args::BrowserArgs;

#[derive(Args)]
pub(crate) struct DoctorArgs {
    /// Also check this Redis server.
    #[arg(long, value_name = "URL", env = "WEBGYM_REDIS", hide_env_values = true)]
    redis: Option<String>,
    /// The CA certificate (PEM file) that signed its certificate.
    #[arg(long, value_name = "FILE", env = "WEBGYM_REDIS_CA")]
    redis_ca: Option<PathBuf>,
    #[command(flatten)]
    browser: BrowserArgs,
}

/// The result of a check.
enum Finding {
    Ok(String),
    /// Works, but could be better; with advice.
    Hint(String, String),
    /// Does not work; with the fix.
    Failed(String, String),
}

pub(crate) async fn doctor(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let mut failed = 0;
    let mut report = |name: &str, finding: Finding| match finding {
        Finding::Ok(what) => println!("  ok    {name}: {what}"),
        Finding::Hint(what, fix) => println!("  hint  {name}: {what}\n        {fix}"),
        Finding::Failed(what, fix) => {
            failed += 1;
            println!("  FAIL  {name}: {what}\n        to fix it: {fix}");
        }
    };
    report("Chromium", check_chromium(&args.browser).await);
    report("fonts", check_fonts());
    report("shared memory", check_shm());
    report("open files", check_files());
    for (what, port) in [("master", 7000), ("node", 8080), ("monitor", 5000)] {
        report(&format!("port {port}"), check_port(what, port));
    }
    match &args.redis {
        Some(url) => report("Redis", check_redis(url, args.redis_ca.as_deref()).await),
        None => report("Redis", Finding::Ok("not configured, and not needed on one machine".into())),
    }
    if failed == 0 {
        println!("All checks passed.");
        return Ok(ExitCode::SUCCESS);
    }
    println!("{failed} of these must be fixed before webgym can work.");
    Ok(ExitCode::FAILURE)
}

async fn check_chromium(args: &BrowserArgs) -> Finding {
    let install = "apt-get install chromium-headless-shell";
    let launch = match args.launch() {
        Ok(launch) => launch,
        Err(error) => return Finding::Failed(error.to_string(), install.into()),
    };
    let path = launch.executable.path.display().to_string();
    let started = Instant::now();
    let host = match Host::launch(&launch).await {
        Ok(host) => host,
        Err(error) => {
            return Finding::Failed(
                error.to_string(),
                format!("run it manually: {path} --headless --no-sandbox --dump-dom about:blank"),
            );
        }
    };
    let finding = match take_screenshot(&host).await {
        Ok(bytes) => {
            let elapsed = started.elapsed().as_millis();
            let sandbox = if host.is_sandboxed() { "with its sandbox" } else { "without its sandbox" };
            Finding::Ok(format!(
                "{} at {path}, {sandbox}; started and took a screenshot in {elapsed} ms ({bytes} bytes)",
                host.version().product
            ))
        }
        Err(error) => {
            Finding::Failed(format!("{path} starts, but cannot take a screenshot: {error}"), install.into())
        }
    };
    host.close().await;
    finding
}

async fn take_screenshot(host: &Host) -> Result<usize, browser::BrowserError> {
    let mut instance = host.instance(&Options::default()).await?;
    let page = "data:text/html,<title>doctor</title><h1>Hello</h1><button>Press</button>";
    instance.execute(&Command::VisitPage { url: page.into() }).await?;
    let seen = instance.observe(&ObserveRequest::screenshot(InteractionMode::SetOfMarks)).await?;
    let bytes = seen.screenshot.map_or(0, |image| image.bytes.len());
    instance.dispose().await?;
    Ok(bytes)
}

fn check_fonts() -> Finding {
    let listed = std::process::Command::new("fc-list").arg(":").arg("family").output();
    let fix = "apt-get install fonts-liberation fonts-noto-core fonts-noto-cjk fonts-noto-color-emoji";
    match listed {
        Ok(output) => {
            let families = String::from_utf8_lossy(&output.stdout).lines().count();
            let has = |word: &str| String::from_utf8_lossy(&output.stdout).contains(word);
            if families == 0 {
                return Finding::Failed("none installed: pages would show no text".into(), fix.into());
            }
            let missing: Vec<&str> = [("CJK", "Chinese, Japanese and Korean"), ("Emoji", "emoji")]
                .into_iter()
                .filter_map(|(word, what)| (!has(word)).then_some(what))
                .collect();
            if missing.is_empty() {
                Finding::Ok(format!("{families} families"))
            } else {
                Finding::Hint(format!("{families} families, none for {}", missing.join(" and ")), fix.into())
            }
        }
        Err(_) => Finding::Hint(
            "fc-list is not installed, so fonts cannot be counted".into(),
            "apt-get install fontconfig".into(),
        ),
    }
}

fn check_shm() -> Finding {
    let fix = "enlarge it: mount -o remount,size=2G /dev/shm, or for containers: --shm-size=2g. Until then browsers use files instead";
    match rustix::fs::statvfs("/dev/shm") {
        Ok(stat) => {
            let mebibytes = stat.f_blocks * stat.f_frsize / (1 << 20);
            if mebibytes >= 512 {
                Finding::Ok(format!("{mebibytes} MiB at /dev/shm"))
            } else {
                Finding::Hint(format!("only {mebibytes} MiB at /dev/shm"), fix.into())
            }
        }
        Err(error) => Finding::Hint(format!("cannot read /dev/shm ({error})"), fix.into()),
    }
}

fn check_files() -> Finding {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    match limit {
        Some(limit) if limit < 1024 => {
            Finding::Failed(format!("at most {limit}"), "raise it: ulimit -n 65536".into())
        }
        Some(limit) if limit < 8192 => Finding::Hint(
            format!("at most {limit}, enough for about {} instances", limit / 20),
            "for more: ulimit -n 65536".into(),
        ),
        Some(limit) => Finding::Ok(format!("at most {limit}")),
        None => Finding::Ok("unlimited".into()),
    }
}

fn check_port(what: &str, port: u16) -> Finding {
    match TcpListener::bind(("127.0.0.1", port)) {
        Ok(_) => Finding::Ok(format!("free for the {what}")),
        Err(error) => Finding::Hint(
            format!("in use ({error}); the {what} uses it by default"),
            format!(
                "choose another port for the {what}, or stop the program that listens there (ss -ltnp 'sport = :{port}')"
            ),
        ),
    }
}

async fn check_redis(url: &str, ca: Option<&Path>) -> Finding {
    let fix = "start it (apt-get install redis-server; redis-server --port 6379) or correct the URL";
    let server = RedisServer { address: url.to_owned(), ca: ca.map(Path::to_owned) };
    match farm::ping_redis(&server).await {
        Ok(()) => Finding::Ok("reachable".into()),
        Err(error) => Finding::Failed(error.to_string(), fix.into()),
    }
}
