//! Pages that try to reach what is behind the browser: this machine, its network, a cloud's metadata service. In a separate
//! network namespace those addresses exist, and so does a public one for the attacker; every connection is recorded.

use std::{
    net::Ipv4Addr,
    process::{Command, ExitCode},
    sync::{Arc, Mutex},
    time::Duration,
};

use libtest_mimic::Trial;
use serde_json::json;
use testkit::{Farm, Lease, RecordingServer, Served, Webgym, hosts, poll_until};
use tokio::{
    net::{TcpListener, UdpSocket},
    runtime::Runtime,
};

use crate::{
    AttackFuture, TIMEOUT,
    dns_server::{Answer, DnsServer},
    environment::serve,
};

type Attack = (&'static str, fn() -> AttackFuture);

const ATTACKS: &[Attack] = &[
    ("private_addresses_are_unreachable", || Box::pin(reaches_private_addresses())),
    ("dns_rebinding_is_blocked", || Box::pin(rebinds_dns())),
];

/// Set in the process that runs one attack in its own network namespace.
const INSIDE: &str = "WEBGYM_HOSTILE_ATTACK";
const NOT_PERMITTED: u8 = 77;
const PUBLIC: Ipv4Addr = Ipv4Addr::new(11, 22, 33, 44);
const PRIVATE: [&str; 5] = ["127.0.0.1", "10.0.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"];

pub(crate) fn inside() -> Option<String> {
    std::env::var(INSIDE).ok()
}

pub(crate) fn trials() -> Vec<Trial> {
    let trial = |name: &'static str| {
        Trial::test(format!("network::{name}"), move || {
            let own = std::env::current_exe()?;
            let status = Command::new(own).env(INSIDE, name).status()?;
            let ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
            match status.code() {
                Some(0) => Ok(()),
                Some(code) if code == i32::from(NOT_PERMITTED) && !ci => Ok(()),
                _ => Err(format!("{name} in its own network namespace: {status}").into()),
            }
        })
    };
    ATTACKS.iter().map(|(name, _)| trial(name)).collect()
}

/// Runs one attack in its own network namespace.
pub(crate) fn run(name: &str) -> ExitCode {
    if let Err(reason) = hosts::enter_network_namespace() {
        eprintln!("\nNOT TESTED: {name}. This machine does not permit network namespaces: {reason}\n");
        return ExitCode::from(NOT_PERMITTED);
    }
    let (_, attack) = ATTACKS.iter().find(|(known, _)| *known == name).expect("a known attack");
    let folder = tempfile::tempdir().expect("a folder");
    let resolver = folder.path().join("resolv.conf");
    std::fs::write(&resolver, "nameserver 127.0.0.1\noptions timeout:2 attempts:2\n").expect("a file");
    command("mount", &["--bind", &resolver.display().to_string(), "/etc/resolv.conf"]);
    for address in PRIVATE.iter().skip(1).map(ToString::to_string).chain([PUBLIC.to_string()]) {
        command("ip", &["addr", "add", &format!("{address}/32"), "dev", "lo"]);
    }
    Runtime::new().expect("a runtime").block_on(attack());
    ExitCode::SUCCESS
}

fn command(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status();
    assert!(status.is_ok_and(|status| status.success()), "{program} {arguments:?}");
}

/// Records every connection to the addresses it listens on.
#[derive(Clone, Default)]
struct Caught(Arc<Mutex<Vec<String>>>);

impl Caught {
    async fn listen(&self, address: &str) {
        let listener = TcpListener::bind(address).await.unwrap_or_else(|error| panic!("{address}: {error}"));
        let (caught, name) = (self.clone(), address.to_owned());
        tokio::spawn(async move {
            while let Ok((_, from)) = listener.accept().await {
                caught.0.lock().expect("no panic").push(format!("{from} connected to {name}"));
            }
        });
    }

    async fn listen_for_packets(&self, address: &str) {
        let socket = UdpSocket::bind(address).await.unwrap_or_else(|error| panic!("{address}: {error}"));
        let (caught, name) = (self.clone(), address.to_owned());
        tokio::spawn(async move {
            while let Ok((_, from)) = socket.recv_from(&mut [0; 100]).await {
                caught.0.lock().expect("no panic").push(format!("{from} sent a packet to {name}"));
            }
        });
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().expect("no panic").clone()
    }
}

struct TestNetwork {
    webgym: Webgym,
    farm: Farm,
    lease: Lease,
    site: RecordingServer,
    dns: DnsServer,
    caught: Caught,
}

impl TestNetwork {
    async fn start() -> Self {
        let dns = DnsServer::start().await;
        dns.set("evil.test", Answer::All(vec![PUBLIC]));
        dns.set("intranet.test", Answer::All(vec![Ipv4Addr::new(10, 0, 0, 1)]));
        let caught = Caught::default();
        for address in PRIVATE {
            for port in [80, 443, 8080] {
                caught.listen(&format!("{address}:{port}")).await;
            }
            caught.listen_for_packets(&format!("{address}:3478")).await;
        }
        caught.listen("[::1]:80").await;
        let site = RecordingServer::start_at(&format!("{PUBLIC}:80")).await;
        let webgym = serve("serve 1").await;
        let farm = webgym.master();
        let lease = farm.get().await;
        Self { webgym, farm, lease, site, dns, caught }
    }

    async fn wait_for_text(&self, text: &str) -> String {
        poll_until(&format!("the page contains {text:?}"), TIMEOUT * 2, async || {
            let page = self.farm.text(&self.lease).await;
            page.contains(text).then_some(page)
        })
        .await
    }

    async fn finish(self) {
        assert_eq!(self.caught.all(), Vec::<String>::new(), "no private address was reached");
        self.farm.reset(&self.lease).await.ok();
        self.webgym.stop().await;
    }
}

const SPELLINGS: [&str; 24] = [
    "127.0.0.1",
    "localhost",
    "localhost.",
    "a.localhost",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "0x7f.0.0.1",
    "127.000.000.001",
    "①②⑦.0.0.1",
    "0.0.0.0",
    "0",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[64:ff9b::7f00:1]",
    "10.0.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "2852039166",
    "intranet.test",
];

/// Tries every way to reach every host and reports each success.
const ATTEMPTS: &str = "<body><script>
const attempt = (name, trying) => Promise.race([trying, new Promise((done) => setTimeout(done, 6000, 'nothing'))]).then((result) => { if (result === 'THROUGH') document.body.append(name + ' THROUGH; '); }, () => 0);
const loads = (tag, at, url) => new Promise((done) => { const it = document.createElement(tag); it[at] = url; it.onload = () => done(tag === 'img' ? 'THROUGH' : ''); it.onerror = () => done(''); document.body.append(it); });
const all = HOSTS.flatMap((host, n) => ['http://' + host + ':80', 'http://' + host + ':8080', 'https://' + host].flatMap((base) => [
  attempt(base + ' cors', fetch(base + '/fetch').then((it) => it.ok ? 'THROUGH' : '')), attempt(base + ' fetch', fetch(base + '/fetch', {mode: 'no-cors'})),
  attempt(base + ' image', loads('img', 'src', base + '/image')), attempt(base + ' frame', loads('iframe', 'src', base + '/frame')), attempt(base + ' script', loads('script', 'src', base + '/script')),
  attempt(base + ' socket', new Promise((done) => { const it = new WebSocket(base.replace('http', 'ws') + '/socket'); it.onopen = () => done('THROUGH'); it.onerror = () => done(''); })),
]).concat([
  attempt(host + ' redirect', fetch('/redirect-' + n, {mode: 'no-cors'})), attempt(host + ' redirected image', loads('img', 'src', '/redirect-' + n)),
  attempt(host + ' redirected frame', loads('iframe', 'src', '/redirect-' + n)), attempt(host + ' beacon', Promise.resolve(navigator.sendBeacon('http://' + host + '/beacon'))),
  attempt(host + ' packets', (async () => { const it = new RTCPeerConnection({iceServers: [{urls: 'stun:' + host + ':3478'}, {urls: 'turn:' + host + ':80?transport=tcp', username: 'u', credential: 'c'}]}); it.createDataChannel('x'); await it.setLocalDescription(); })()),
]));
for (const host of HOSTS) for (const rel of ['preconnect', 'prefetch', 'preload', 'stylesheet', 'icon']) { const link = document.createElement('link'); link.rel = rel; link.as = 'image'; link.href = 'http://' + host + '/link'; document.head.append(link); }
Promise.all(all).then(() => setTimeout(() => document.body.append('all tried'), 2000));
</script>";

async fn reaches_private_addresses() {
    let network = TestNetwork::start().await;
    let hosts = json!(SPELLINGS).to_string();
    network
        .site
        .serve("/", Served::Page(format!("<meta charset=utf-8>{}", ATTEMPTS.replace("HOSTS", &hosts))));
    for (number, host) in SPELLINGS.iter().enumerate() {
        network.site.serve(
            &format!("/redirect-{number}"),
            Served::Redirect(format!("http://{}/redirected", ascii(host))),
        );
    }
    network.farm.visit(&network.lease, "http://evil.test/").await;
    let text = network.wait_for_text("all tried").await;
    assert!(!text.contains("THROUGH"), "{text}");
    let requests = network.site.requests();
    for number in 0..SPELLINGS.len() {
        assert!(requests.contains(&format!("GET /redirect-{number}")), "the page did not try: {requests:?}");
    }
    // The agent itself tries too, directly and through a redirect.
    for (number, host) in SPELLINGS.iter().enumerate() {
        let visit = |url: String| network.farm.execute(&network.lease, json!({"visit_page": {"url": url}}));
        let direct = visit(format!("http://{host}/visit")).await;
        assert_eq!(direct.code(), "url_refused", "{host}: {}", direct.text());
        visit(format!("http://evil.test/redirect-{number}")).await;
        assert!(!network.farm.text(&network.lease).await.contains(RecordingServer::SECRET));
    }
    network.finish().await;
}

/// A header cannot contain circled digits; the browser reads them as plain ones anyway.
fn ascii(host: &str) -> &str {
    if host.is_ascii() { host } else { "127.0.0.1" }
}

/// DNS rebinding: the name resolves to a public address when it is checked, and to this machine when it is used.
async fn rebinds_dns() {
    let network = TestNetwork::start().await;
    let loopback = Ipv4Addr::LOCALHOST;
    network.site.serve(
        "/rebind",
        Served::Page(
            "<body><script>let refused = 0; setInterval(async () => { const it = await fetch('/secret').catch(() => null); if (!it) return; const text = await it.text();
            if (it.status === 403) document.body.textContent = 'refused ' + ++refused + ': ' + text; else document.body.append(' allowed'); }, 100)</script>"
                .into(),
        ),
    );
    network.dns.set("rebind.test", Answer::All(vec![PUBLIC]));
    network.farm.visit(&network.lease, "http://rebind.test/rebind").await;
    network.wait_for_text("allowed").await;
    network.dns.set("rebind.test", Answer::All(vec![loopback]));
    let text = network.wait_for_text("refused 9").await;
    assert!(!text.contains("127.0.0.1"), "the page must not learn what names resolve to here: {text}");
    // The proxy connects to the address that it checked, even if the DNS answer changes in between.
    for first in [vec![PUBLIC, loopback], vec![loopback, PUBLIC]] {
        network.dns.set("flip.test", Answer::InTurn(first, 0));
        for _ in 0..15 {
            let visit = json!({"visit_page": {"url": "http://flip.test/secret"}});
            tokio::time::timeout(Duration::from_secs(60), network.farm.execute(&network.lease, visit))
                .await
                .expect("a response");
        }
    }
    // Of several addresses only the public one is tried, even if nothing listens there.
    network.dns.set("both.test", Answer::All(vec![loopback, PUBLIC]));
    network.farm.visit(&network.lease, "http://both.test/page").await;
    assert!(
        network.farm.text(&network.lease).await.contains(RecordingServer::SECRET),
        "the public address was reached"
    );
    let visit = json!({"visit_page": {"url": "http://both.test:8080/"}});
    let reply = network.farm.execute(&network.lease, visit).await;
    let text = network.farm.text(&network.lease).await;
    assert!(reply.status != 200 || text.contains("webgym:"), "{} {text}", reply.text());
    network.finish().await;
}
