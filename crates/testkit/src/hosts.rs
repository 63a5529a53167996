//! Several hosts on one machine: a network namespace each, on one bridge, in a network that is cut off from the world.
//! Links between them can be cut and mended. Needs `ip` (iproute2) and `unshare`, and the right to use them.

use std::{
    ffi::OsString,
    net::{IpAddr, Ipv4Addr},
    os::unix::process::CommandExt,
    process::Command,
    sync::atomic::{AtomicU8, Ordering},
};

/// Set in the process that lives in the cut-off network.
const INSIDE: &str = "WEBGYM_INSIDE_NETWORK";

/// A place of our own for the names of namespaces, also where the system's is not ours to write.
const NAMES: &str = "{ mkdir -p /run/netns 2>/dev/null || { mount -t tmpfs none /run && mkdir /run/netns; }; } \
    && mount -t tmpfs none /run/netns";

/// Where the test itself is on the bridge.
pub const TEST_HOST: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

fn run(program: &str, words: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(words).output();
    let output = output.map_err(|error| format!("{program} cannot be run ({error})"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("{program} {}: {said}", words.join(" ")))
}

fn ip(words: &str) -> Result<(), String> {
    run("ip", &words.split_whitespace().collect::<Vec<_>>())
}

/// Puts this very process into a network of its own, by starting the program again there; comes back in the new one
/// only. An error says why that is not possible here.
pub fn enter_own_network() -> Result<(), String> {
    enter(&[], &[])
}

/// The same on a machine of its own: the process table shows nothing else, `/tmp` and `/dev/shm` are empty, and whatever
/// is left when the program ends goes with it.
pub fn enter_own_machine() -> Result<(), String> {
    // The first process of a process table adopts orphans and must reap them; a shell does.
    let init = ["sh", "-c", "\"$0\" \"$@\"; exit $?"];
    enter(&["--pid", "--fork", "--kill-child", "--mount-proc"], &init)?;
    run("mount", &["-t", "tmpfs", "none", "/tmp"])?;
    run("mount", &["-t", "tmpfs", "none", "/dev/shm"])
}

fn enter(more: &[&str], init: &[&str]) -> Result<(), String> {
    if std::env::var_os(INSIDE).is_some() {
        return arrange();
    }
    let spaces: &[&[&str]] = &[&["--net", "--mount"], &["--user", "--map-root-user", "--net", "--mount"]];
    let mut why = String::new();
    for words in spaces {
        let mut probe = [words, more].concat();
        let try_it = format!("{NAMES} && ip netns add probe");
        probe.extend(["sh", "-c", &try_it]);
        match run("unshare", &probe) {
            Ok(()) => {
                let program = std::env::current_exe().map_err(|error| error.to_string())?;
                let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
                let mut again = Command::new("unshare");
                again.args(*words).args(more).args(init).arg(program).args(arguments).env(INSIDE, "1");
                return Err(format!("unshare cannot be run: {}", again.exec()));
            }
            Err(error) => why = error,
        }
    }
    Err(why)
}

fn arrange() -> Result<(), String> {
    run("sh", &["-c", NAMES])?;
    ip("link set lo up")?;
    ip("link add farm type bridge forward_delay 0")?;
    ip(&format!("addr add {TEST_HOST}/24 dev farm"))?;
    ip("link set farm up")
}

/// One host.
#[derive(Debug)]
pub struct Host {
    pub name: String,
    pub ip: Ipv4Addr,
}

static NEXT: AtomicU8 = AtomicU8::new(2);

impl Host {
    /// A new host on the bridge; names are at most 12 letters.
    pub fn new(name: &str) -> Self {
        let ip = Self::free_address();
        let host = Self { name: name.to_owned(), ip };
        let made = || -> Result<(), String> {
            self::ip(&format!("netns add {name}"))?;
            self::ip(&format!("link add v-{name} type veth peer name eth0 netns {name}"))?;
            self::ip(&format!("link set v-{name} master farm up"))?;
            host.ip("link set lo up")?;
            host.ip("link set eth0 up")?;
            host.ip(&format!("addr add {ip}/24 dev eth0"))
        };
        made().unwrap_or_else(|error| panic!("host {name}: {error}"));
        host
    }

    fn free_address() -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 0, NEXT.fetch_add(1, Ordering::Relaxed))
    }

    fn ip(&self, words: &str) -> Result<(), String> {
        ip(&format!("-n {} {words}", self.name))
    }

    fn must(&self, words: &str) {
        self.ip(words).unwrap_or_else(|error| panic!("{error}"));
    }

    pub fn address(&self) -> IpAddr {
        self.ip.into()
    }

    /// The words that start a program on this host.
    pub fn launcher(&self) -> Vec<String> {
        ["ip", "netns", "exec", &self.name].map(str::to_owned).to_vec()
    }

    /// Nothing goes between the two any more, and nobody is told.
    pub fn cut(&self, other: &Self) {
        self.must(&format!("route add blackhole {}/32", other.ip));
        other.must(&format!("route add blackhole {}/32", self.ip));
    }

    pub fn mend(&self, other: &Self) {
        self.must(&format!("route del blackhole {}/32", other.ip));
        other.must(&format!("route del blackhole {}/32", self.ip));
    }

    fn run(&self, program: &str, words: &str) -> Result<(), String> {
        let words: Vec<&str> = words.split_whitespace().collect();
        run("ip", &[&["netns", "exec", &self.name, program], words.as_slice()].concat())
    }

    /// So many of a hundred packets that come in are lost, until [`Host::calm`].
    pub fn lose(&self, percent: usize) -> Result<(), String> {
        self.run("nft", "add table ip weather")?;
        self.run("nft", "add chain ip weather in { type filter hook input priority 0 ; }")?;
        self.run("nft", &format!("add rule ip weather in iif eth0 numgen random mod 100 lt {percent} drop"))
    }

    /// Packets that go out are late, until [`Host::calm`]; says how. Where the kernel cannot delay as such, a thin link
    /// does: what queues up there is late, and what queues up for too long is lost.
    pub fn delay(&self) -> Result<&'static str, String> {
        if self.run("tc", "qdisc add dev eth0 root netem delay 150ms 100ms").is_ok() {
            return Ok("netem, 150 ms ± 100 ms");
        }
        self.run("tc", "qdisc add dev eth0 root tbf rate 800kbit burst 3kb latency 800ms")?;
        Ok("a link of 800 kbit/s, up to 800 ms late")
    }

    /// No more losses and delays.
    pub fn calm(&self) {
        let _ = self.run("nft", "delete table ip weather");
        let _ = self.run("tc", "qdisc del dev eth0 root");
    }

    /// Takes another address and gives up the old one.
    pub fn move_away(&mut self) {
        let (old, new) = (self.ip, Self::free_address());
        self.must(&format!("addr del {old}/24 dev eth0"));
        self.must(&format!("addr add {new}/24 dev eth0"));
        self.ip = new;
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // With its last process the host is gone.
        let _ = ip(&format!("link del v-{}", self.name));
        let _ = ip(&format!("netns del {}", self.name));
    }
}
