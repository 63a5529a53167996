//! `webgym doctor`: looks at everything webgym needs from a machine. Every failed check says how to mend it.

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
    /// Also check that this Redis answers.
    #[arg(long, value_name = "URL", env = "WEBGYM_REDIS", hide_env_values = true)]
    redis: Option<String>,
    /// The authority (PEM file) that signed its certificate.
    #[arg(long, value_name = "FILE", env = "WEBGYM_REDIS_CA")]
    redis_ca: Option<PathBuf>,
    #[command(flatten)]
    browser: BrowserArgs,
}

/// What a check found.
enum Finding {
    Fine(String),
    /// Works, but could be better.
    Hint(String, String),
    /// Does not work; and how to mend it.
    Broken(String, String),
}

pub(crate) async fn doctor(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let mut broken = 0;
    let mut say = |name: &str, finding: Finding| match finding {
        Finding::Fine(what) => println!("  ok    {name}: {what}"),
        Finding::Hint(what, mend) => println!("  hint  {name}: {what}\n        {mend}"),
        Finding::Broken(what, mend) => {
            broken += 1;
            println!("  FAIL  {name}: {what}\n        to mend it: {mend}");
        }
    };
    say("Chromium", check_chromium(&args.browser).await);
    say("fonts", check_fonts());
    say("shared memory", check_shm());
    say("open files", check_files());
    for (what, port) in [("master", 7000), ("node", 8080), ("monitor", 5000)] {
        say(&format!("port {port}"), check_port(what, port));
    }
    match &args.redis {
        Some(url) => say("Redis", check_redis(url, args.redis_ca.as_deref()).await),
        None => say("Redis", Finding::Fine("not configured, and not needed on one machine".into())),
    }
    if broken == 0 {
        println!("All is well.");
        return Ok(ExitCode::SUCCESS);
    }
    println!("{broken} of these must be mended before webgym can work.");
    Ok(ExitCode::FAILURE)
}

async fn check_chromium(args: &BrowserArgs) -> Finding {
    let install = "run scripts/setup, or: apt-get install chromium-headless-shell";
    let launch = match args.launch() {
        Ok(launch) => launch,
        Err(error) => return Finding::Broken(error.to_string(), install.into()),
    };
    let path = launch.executable.path.display().to_string();
    let started = Instant::now();
    let host = match Host::launch(&launch).await {
        Ok(host) => host,
        Err(error) => {
            return Finding::Broken(
                error.to_string(),
                format!("try it by hand: {path} --headless --no-sandbox --dump-dom about:blank"),
            );
        }
    };
    let finding = match photograph(&host).await {
        Ok(bytes) => {
            let took = started.elapsed().as_millis();
            let sandbox = if host.is_sandboxed() { "with its sandbox" } else { "without its sandbox" };
            Finding::Fine(format!(
                "{} at {path}, {sandbox}; started and photographed a page in {took} ms ({bytes} bytes)",
                host.version().product
            ))
        }
        Err(error) => {
            Finding::Broken(format!("{path} starts, but takes no screenshot: {error}"), install.into())
        }
    };
    host.close().await;
    finding
}

async fn photograph(host: &Host) -> Result<usize, browser::BrowserError> {
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
    let mend = "apt-get install fonts-liberation fonts-noto-core fonts-noto-cjk fonts-noto-color-emoji";
    match listed {
        Ok(output) => {
            let families = String::from_utf8_lossy(&output.stdout).lines().count();
            let has = |word: &str| String::from_utf8_lossy(&output.stdout).contains(word);
            if families == 0 {
                return Finding::Broken("none installed: pages would show no text".into(), mend.into());
            }
            let missing: Vec<&str> = [("CJK", "Chinese, Japanese and Korean"), ("Emoji", "emoji")]
                .into_iter()
                .filter_map(|(word, what)| (!has(word)).then_some(what))
                .collect();
            if missing.is_empty() {
                Finding::Fine(format!("{families} families"))
            } else {
                Finding::Hint(format!("{families} families, none for {}", missing.join(" and ")), mend.into())
            }
        }
        Err(_) => Finding::Hint(
            "fc-list is not installed, so they cannot be counted".into(),
            "apt-get install fontconfig".into(),
        ),
    }
}

fn check_shm() -> Finding {
    let mend = "mount it larger: mount -o remount,size=2G /dev/shm, or for containers: --shm-size=2g. Until then shared memory goes to files";
    match rustix::fs::statvfs("/dev/shm") {
        Ok(stat) => {
            let mebibytes = stat.f_blocks * stat.f_frsize / (1 << 20);
            if mebibytes >= 512 {
                Finding::Fine(format!("{mebibytes} MiB at /dev/shm"))
            } else {
                Finding::Hint(format!("only {mebibytes} MiB at /dev/shm"), mend.into())
            }
        }
        Err(error) => Finding::Hint(format!("/dev/shm cannot be looked at ({error})"), mend.into()),
    }
}

fn check_files() -> Finding {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    match limit {
        Some(limit) if limit < 1024 => {
            Finding::Broken(format!("at most {limit}"), "raise it: ulimit -n 65536".into())
        }
        Some(limit) if limit < 8192 => Finding::Hint(
            format!("at most {limit}, enough for about {} instances", limit / 20),
            "for more: ulimit -n 65536".into(),
        ),
        Some(limit) => Finding::Fine(format!("at most {limit}")),
        None => Finding::Fine("unlimited".into()),
    }
}

fn check_port(what: &str, port: u16) -> Finding {
    match TcpListener::bind(("127.0.0.1", port)) {
        Ok(_) => Finding::Fine(format!("free for the {what}")),
        Err(error) => Finding::Hint(
            format!("taken ({error}); the {what} uses it by default"),
            format!(
                "choose another when you start the {what}, or end what listens there (ss -ltnp 'sport = :{port}')"
            ),
        ),
    }
}

async fn check_redis(url: &str, ca: Option<&Path>) -> Finding {
    let mend = "start it (apt-get install redis-server; redis-server --port 6379) or correct the address";
    let server = RedisServer { address: url.to_owned(), ca: ca.map(Path::to_owned) };
    match farm::ping_redis(&server).await {
        Ok(()) => Finding::Fine("answers".into()),
        Err(error) => Finding::Broken(error.to_string(), mend.into()),
    }
}
