//! Simulates several hosts on one machine: one network namespace per host, connected by a bridge, without access to
//! the outside. Connections between hosts can be interrupted and restored. Needs `ip` (iproute2), `unshare` and the
//! permission to use them.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs::{self, File},
    io,
    net::{IpAddr, Ipv4Addr},
    os::{fd::AsRawFd, unix::process::CommandExt},
    path::{Component, Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU8, Ordering},
};

/// Set in the process that runs inside the namespaces.
const INSIDE: &str = "WEBGYM_INSIDE_NETWORK";

/// Mounts a writable folder for the names of namespaces, also where the system's is read-only.
const MOUNT_NETNS: &str = "{ mkdir -p /run/netns 2>/dev/null || { mount -t tmpfs none /run && mkdir /run/netns; }; } \
    && mount -t tmpfs none /run/netns";

/// The address of the test itself on the bridge.
pub const TEST_HOST: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("cannot run {program} ({error})"))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("{program} {}: {stderr}", arguments.join(" ")))
}

fn ip(arguments: &str) -> Result<(), String> {
    run("ip", &arguments.split_whitespace().collect::<Vec<_>>())
}

/// Moves this process into its own network namespace by executing the program again inside it. Returns `Ok` only in
/// the new process; an error says why namespaces cannot be used here.
pub fn enter_network_namespace() -> Result<(), String> {
    enter(&[], &[])
}

/// Like [`enter_network_namespace`], with an isolated process table and empty `/tmp` and `/dev/shm`. Everything that
/// is left when the program ends disappears with it. The paths in `keep` and the program itself stay visible if they
/// are below `/tmp`.
pub fn enter_isolated_machine(keep: &[&Path]) -> Result<(), String> {
    // The first process of a process table adopts orphans and must reap them; a shell does.
    let init = ["sh", "-c", "\"$0\" \"$@\"; exit $?"];
    enter(&["--pid", "--fork", "--kill-child", "--mount-proc"], &init)?;
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let keep: BTreeSet<PathBuf> =
        keep.iter().copied().chain([program.as_path()]).filter_map(entry_of_tmp).collect();
    mount_empty_tmp(&keep).map_err(|error| format!("cannot mount an empty /tmp: {error}"))?;
    run("mount", &["-t", "tmpfs", "none", "/dev/shm"])
}

/// Returns the entry of `/tmp` that is or contains this absolute path.
fn entry_of_tmp(path: &Path) -> Option<PathBuf> {
    match path.strip_prefix("/tmp").ok()?.components().next()? {
        Component::Normal(name) => Some(Path::new("/tmp").join(name)),
        _ => None,
    }
}

/// Mounts an empty `/tmp` and makes these entries of the old one visible in it.
fn mount_empty_tmp(keep: &BTreeSet<PathBuf>) -> io::Result<()> {
    let opened = keep.iter().map(File::open).collect::<io::Result<Vec<_>>>()?;
    run("mount", &["-t", "tmpfs", "none", "/tmp"]).map_err(io::Error::other)?;
    for (path, old) in keep.iter().zip(opened) {
        if old.metadata()?.is_dir() {
            fs::create_dir(path)?;
        } else {
            File::create(path)?;
        }
        // The path now names the new entry; the descriptor still refers to the old one.
        rustix::mount::mount_bind(format!("/proc/self/fd/{}", old.as_raw_fd()), path)?;
    }
    Ok(())
}

fn enter(more: &[&str], init: &[&str]) -> Result<(), String> {
    if std::env::var_os(INSIDE).is_some() {
        return create_bridge();
    }
    let variants: &[&[&str]] = &[&["--net", "--mount"], &["--user", "--map-root-user", "--net", "--mount"]];
    let mut reason = String::new();
    for flags in variants {
        let mut probe = [flags, more].concat();
        let script = format!("{MOUNT_NETNS} && ip netns add probe");
        probe.extend(["sh", "-c", &script]);
        match run("unshare", &probe) {
            Ok(()) => {
                let program = std::env::current_exe().map_err(|error| error.to_string())?;
                let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
                let mut command = Command::new("unshare");
                command.args(*flags).args(more).args(init).arg(program).args(arguments).env(INSIDE, "1");
                return Err(format!("cannot run unshare: {}", command.exec()));
            }
            Err(error) => reason = error,
        }
    }
    Err(reason)
}

fn create_bridge() -> Result<(), String> {
    run("sh", &["-c", MOUNT_NETNS])?;
    ip("link set lo up")?;
    ip("link add farm type bridge forward_delay 0")?;
    ip(&format!("addr add {TEST_HOST}/24 dev farm"))?;
    ip("link set farm up")
}

/// A simulated host.
#[derive(Debug)]
pub struct Host {
    pub name: String,
    pub ip: Ipv4Addr,
}

static NEXT: AtomicU8 = AtomicU8::new(2);

impl Host {
    /// Creates a host on the bridge. The name may have at most 12 letters.
    pub fn new(name: &str) -> Self {
        let ip = Self::free_address();
        let host = Self { name: name.to_owned(), ip };
        let create = || -> Result<(), String> {
            self::ip(&format!("netns add {name}"))?;
            self::ip(&format!("link add v-{name} type veth peer name eth0 netns {name}"))?;
            self::ip(&format!("link set v-{name} master farm up"))?;
            host.ip("link set lo up")?;
            host.ip("link set eth0 up")?;
            host.ip(&format!("addr add {ip}/24 dev eth0"))
        };
        create().unwrap_or_else(|error| panic!("host {name}: {error}"));
        host
    }

    fn free_address() -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 0, NEXT.fetch_add(1, Ordering::Relaxed))
    }

    fn ip(&self, arguments: &str) -> Result<(), String> {
        ip(&format!("-n {} {arguments}", self.name))
    }

    fn must_ip(&self, arguments: &str) {
        self.ip(arguments).unwrap_or_else(|error| panic!("{error}"));
    }

    pub fn address(&self) -> IpAddr {
        self.ip.into()
    }

    /// Returns the command prefix that runs a program on this host.
    pub fn launcher(&self) -> Vec<String> {
        ["ip", "netns", "exec", &self.name].map(str::to_owned).to_vec()
    }

    /// Drops all packets between the two hosts silently.
    pub fn disconnect(&self, other: &Self) {
        self.must_ip(&format!("route add blackhole {}/32", other.ip));
        other.must_ip(&format!("route add blackhole {}/32", self.ip));
    }

    pub fn reconnect(&self, other: &Self) {
        self.must_ip(&format!("route del blackhole {}/32", other.ip));
        other.must_ip(&format!("route del blackhole {}/32", self.ip));
    }

    fn run(&self, program: &str, arguments: &str) -> Result<(), String> {
        let arguments: Vec<&str> = arguments.split_whitespace().collect();
        run("ip", &[&["netns", "exec", &self.name, program], arguments.as_slice()].concat())
    }

    /// Drops this percentage of incoming packets until [`Host::restore_packets`].
    pub fn drop_packets(&self, percent: usize) -> Result<(), String> {
        self.run("nft", "add table ip faults")?;
        self.run("nft", "add chain ip faults in { type filter hook input priority 0 ; }")?;
        self.run("nft", &format!("add rule ip faults in iif eth0 numgen random mod 100 lt {percent} drop"))
    }

    /// Delays outgoing packets until [`Host::restore_packets`] and returns a description. Without netem in the kernel, a
    /// slow link delays them instead and drops those that queue for too long.
    pub fn delay_packets(&self) -> Result<&'static str, String> {
        if self.run("tc", "qdisc add dev eth0 root netem delay 150ms 100ms").is_ok() {
            return Ok("netem, 150 ms ± 100 ms");
        }
        self.run("tc", "qdisc add dev eth0 root tbf rate 800kbit burst 3kb latency 800ms")?;
        Ok("a link of 800 kbit/s, up to 800 ms late")
    }

    /// Ends packet loss and delay.
    pub fn restore_packets(&self) {
        let _ = self.run("nft", "delete table ip faults");
        let _ = self.run("tc", "qdisc del dev eth0 root");
    }

    /// Replaces the address of the host by a new one.
    pub fn change_address(&mut self) {
        let (old, new) = (self.ip, Self::free_address());
        self.must_ip(&format!("addr del {old}/24 dev eth0"));
        self.must_ip(&format!("addr add {new}/24 dev eth0"));
        self.ip = new;
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // The namespace itself disappears with its last process.
        let _ = ip(&format!("link del v-{}", self.name));
        let _ = ip(&format!("netns del {}", self.name));
    }
}
