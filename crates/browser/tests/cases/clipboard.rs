//! The clipboard: each tenant has its own, whatever way a page or the agent uses it.

use browser::Options;
use serde_json::{Value, json};

use crate::common::{
    fixture::{Fixture, with_fixture},
    table::{Eventually, Logged},
    tester::Tester,
};

async fn tenant(fixture: &'static Fixture) -> Tester {
    let instance = fixture.host.instance(&Options::default()).await.expect("an instance");
    Tester::new(instance, &fixture.sites)
}

impl Tester {
    async fn keys(&mut self, keys: Value) {
        self.run(json!({"keypress": {"keys": keys}})).await;
    }

    /// Opens the page with a secure origin, as `navigator.clipboard` needs it.
    async fn visit_clipboard_page(&mut self) {
        self.visit("/course/clipboard").await;
    }

    async fn set(&self, id: &str, text: &str) {
        self.js(&format!("void (document.getElementById('{id}').value = {})", json!(text))).await;
    }

    async fn focus(&self, id: &str) {
        self.js(&format!("void document.getElementById('{id}').focus()")).await;
    }

    async fn copy_by_keys(&mut self, text: &str) {
        self.set("from", text).await;
        self.copy_field("from").await;
    }

    /// Copies the whole text of a field by keys.
    async fn copy_field(&mut self, id: &str) {
        self.focus(id).await;
        self.keys(json!(["ctrl", "a"])).await;
        self.keys(json!(["ctrl", "c"])).await;
    }

    async fn copy_by_button(&mut self, button: &str, text: &str) {
        self.set("from", text).await;
        self.click_named(button).await;
    }

    async fn paste_by_keys(&mut self) -> String {
        self.set("to", "").await;
        self.focus("to").await;
        self.keys(json!(["ctrl", "v"])).await;
        self.js("to.value").await.as_str().unwrap_or_default().to_owned()
    }

    async fn paste_by_button(&mut self) -> String {
        self.set("to", "").await;
        self.click_named("read").await;
        self.js("to.value").await.as_str().unwrap_or_default().to_owned()
    }
}

#[test]
fn every_copy_can_be_pasted_in_every_way() {
    with_fixture(async |fixture| {
        let mut tenant = tenant(fixture).await;
        tenant.visit_clipboard_page().await;
        tenant.copy_by_keys("by keys").await;
        assert_eq!(tenant.paste_by_keys().await, "by keys");
        assert_eq!(tenant.paste_by_button().await, "by keys");
        tenant.copy_by_button("execCommand", "by command").await;
        tenant.run_step(&Logged("copy true")).await;
        assert_eq!(tenant.paste_by_keys().await, "by command");
        tenant.copy_by_button("write", "by API").await;
        tenant.run_step(&Logged("written")).await;
        assert_eq!(tenant.paste_by_keys().await, "by API");
        assert_eq!(tenant.paste_by_button().await, "by API");
        tenant.instance.dispose().await.unwrap();
    });
}

#[test]
fn tenants_do_not_share_a_clipboard() {
    with_fixture(async |fixture| {
        let mut owner = tenant(fixture).await;
        let mut other = tenant(fixture).await;
        for tester in [&mut owner, &mut other] {
            tester.visit_clipboard_page().await;
        }
        for copy in ["keys", "execCommand", "write"] {
            match copy {
                "keys" => owner.copy_by_keys("secret").await,
                button => owner.copy_by_button(button, "secret").await,
            }
            assert_eq!(other.paste_by_keys().await, "", "{copy}");
            assert_eq!(other.paste_by_button().await, "", "{copy}");
        }
        owner.instance.dispose().await.unwrap();
        let mut next = tenant(fixture).await;
        next.visit_clipboard_page().await;
        assert_eq!(next.paste_by_keys().await, "", "the next tenant");
        next.instance.dispose().await.unwrap();
        other.instance.dispose().await.unwrap();
    });
}

#[test]
fn html_and_images_are_copied() {
    with_fixture(async |fixture| {
        let mut tenant = tenant(fixture).await;
        tenant.visit_clipboard_page().await;
        tenant.js("void getSelection().selectAllChildren(words)").await;
        tenant.keys(json!(["ctrl", "c"])).await;
        tenant
            .js("void (rich.focus(), getSelection().selectAllChildren(rich), getSelection().collapseToEnd())")
            .await;
        tenant.keys(json!(["ctrl", "v"])).await;
        assert_eq!(tenant.js("rich.querySelector('b').textContent").await, "bold");
        tenant.js("void (rich.textContent = '')").await;
        tenant.keys(json!("ctrl+shift+v")).await;
        assert_eq!(tenant.js("rich.innerHTML").await, "Some bold words.", "without formatting");
        assert_eq!(tenant.paste_by_keys().await, "Some bold words.");
        tenant.click_named("write image").await;
        tenant
            .run_step(&Eventually("document.getElementById('log').textContent.includes('written image')"))
            .await;
        tenant.focus("own").await;
        tenant.keys(json!(["ctrl", "v"])).await;
        tenant
            .run_step(&Eventually(
                "document.getElementById('log').textContent.includes('pasted file image/png 7x5')",
            ))
            .await;
        tenant.click_named("read types").await;
        tenant
            .run_step(&Eventually(
                "document.getElementById('log').textContent.includes('types image/png image/png')",
            ))
            .await;
        tenant.instance.dispose().await.unwrap();
    });
}

#[test]
fn handlers_of_the_page_decide_what_is_copied_and_pasted() {
    with_fixture(async |fixture| {
        let mut tenant = tenant(fixture).await;
        tenant.visit_clipboard_page().await;
        tenant.focus("own").await;
        tenant.keys(json!(["ctrl", "c"])).await;
        tenant.keys(json!(["ctrl", "v"])).await;
        tenant.run_step(&Logged("pasted text/plain,text/html made by the page")).await;
        assert_eq!(tenant.paste_by_keys().await, "made by the page");
        tenant.js("void addEventListener('keydown', (event) => event.preventDefault())").await;
        assert_eq!(tenant.paste_by_keys().await, "", "the page has cancelled the key");
        tenant.instance.dispose().await.unwrap();
    });
}

#[test]
fn content_survives_navigation_and_cut_removes_the_text() {
    with_fixture(async |fixture| {
        let mut tenant = tenant(fixture).await;
        tenant.visit_clipboard_page().await;
        tenant.set("from", "cut out").await;
        tenant.focus("from").await;
        tenant.keys(json!(["ctrl", "a"])).await;
        tenant.keys(json!(["ctrl", "x"])).await;
        assert_eq!(tenant.js("from.value").await, "");
        tenant.visit_clipboard_page().await;
        assert_eq!(tenant.paste_by_keys().await, "cut out");
        tenant.set("to", "").await;
        tenant.focus("to").await;
        tenant.keys(json!(["shift", "insert"])).await;
        assert_eq!(tenant.js("to.value").await, "cut out");
        tenant.copy_field("secret").await;
        assert_eq!(tenant.paste_by_keys().await, "cut out", "a password is not copied");
        tenant.instance.dispose().await.unwrap();
    });
}

#[test]
fn frames_use_the_clipboard_of_the_tenant() {
    with_fixture(async |fixture| {
        let mut owner = tenant(fixture).await;
        let mut other = tenant(fixture).await;
        other.visit_clipboard_page().await;
        other.copy_by_keys("mine").await;
        for (frame, text) in [("#frame", "from the frame"), ("#bare", "from the bare frame")] {
            for tester in [&mut owner, &mut other] {
                tester.visit_clipboard_page().await;
                let corner = tester.find(frame).await.boxes[0];
                tester.run(json!({"click_coords": {"x": corner.x + 40.0, "y": corner.y + 20.0}})).await;
                tester.keys(json!(["ctrl", "a"])).await;
            }
            owner.keys(json!(["ctrl", "c"])).await;
            assert_eq!(owner.paste_by_keys().await, text, "{frame}");
            for keys in [["ctrl", "v"], ["ctrl", "a"], ["ctrl", "c"]] {
                other.keys(json!(keys)).await;
            }
            assert_eq!(other.paste_by_keys().await, "mine", "{frame}");
        }
        owner.instance.dispose().await.unwrap();
        other.instance.dispose().await.unwrap();
    });
}

#[test]
fn reading_needs_a_user_action() {
    with_fixture(async |fixture| {
        let mut tenant = tenant(fixture).await;
        tenant.visit_clipboard_page().await;
        for call in ["readText()", "read()", "writeText('x')"] {
            let script = format!("navigator.clipboard.{call}.then(() => 'allowed', (error) => error.name)");
            assert_eq!(tenant.js(&script).await, "NotAllowedError", "{call}");
        }
        tenant.instance.dispose().await.unwrap();
    });
}

#[test]
fn content_is_bounded() {
    with_fixture(async |fixture| {
        let mut tenant = tenant(fixture).await;
        tenant.visit_clipboard_page().await;
        tenant.copy_by_keys("small").await;
        let script =
            "navigator.clipboard.writeText('x'.repeat(9 << 20)).then(() => 'written', (error) => error.name)";
        assert_eq!(tenant.js(script).await, "DataError");
        assert_eq!(tenant.paste_by_keys().await, "small");
        tenant.instance.dispose().await.unwrap();
    });
}

/// A page that changes what our scripts use, before and after they use it.
#[test]
fn hostile_page_harms_only_itself() {
    const ATTACK: &str = "for (const name of ['preventDefault', 'stopImmediatePropagation', 'stopPropagation']) Event.prototype[name] = () => {};
        EventTarget.prototype.dispatchEvent = () => true; window.CustomEvent = window.Map = window.Promise = window.Blob = undefined;
        Object.defineProperty(UserActivation.prototype, 'isActive', {get: () => true}); DataTransfer.prototype.getData = () => 'stolen'; true";
    with_fixture(async |fixture| {
        let (mut hostile, mut other) = (tenant(fixture).await, tenant(fixture).await);
        for tester in [&mut hostile, &mut other] {
            tester.visit_clipboard_page().await;
        }
        other.copy_by_keys("mine").await;
        hostile.js(ATTACK).await;
        hostile.copy_by_keys("poison").await;
        hostile.copy_by_button("execCommand", "poison").await;
        assert_eq!(other.paste_by_keys().await, "mine");
        assert_eq!(hostile.paste_by_keys().await, "poison");
        // A page that has not been clicked since it was opened gets nothing, whatever it claims.
        hostile.visit_clipboard_page().await;
        hostile.js(ATTACK).await;
        let script = "navigator.clipboard.readText().then((text) => text, (error) => error.name)";
        assert_eq!(hostile.js(script).await, "NotAllowedError");
        hostile.instance.dispose().await.unwrap();
        other.instance.dispose().await.unwrap();
    });
}

#[test]
fn middle_click_pastes_nothing() {
    with_fixture(async |fixture| {
        let mut tenant = tenant(fixture).await;
        tenant.visit_clipboard_page().await;
        tenant.copy_by_keys("copied").await;
        let (x, y) = tenant.find("#to").await.centre();
        tenant.run(json!({"mouse_click": {"x": x, "y": y, "button": "middle"}})).await;
        assert_eq!(tenant.js("to.value").await, "");
        tenant.instance.dispose().await.unwrap();
    });
}

/// What the page reads or writes late is there when the click on its button returns.
#[test]
fn click_waits_for_clipboard_operations() {
    with_fixture(async |fixture| {
        let mut tenant = tenant(fixture).await;
        tenant.visit_clipboard_page().await;
        tenant.copy_by_button("write", "first").await;
        // Reading a blob may take longer than the page needs to look quiet.
        tenant
            .js("{
                const { text } = Blob.prototype;
                const later = (value) => new Promise((done) => setTimeout(done, 150, value));
                Blob.prototype.text = function () { return later().then(() => text.call(this)); };
                byId('write').onclick = () => navigator.clipboard.write([new ClipboardItem({ 'text/plain': later('late') })]);
            }")
            .await;
        assert_eq!(tenant.paste_by_button().await, "first");
        tenant.click_named("write").await;
        assert_eq!(tenant.paste_by_button().await, "late");
        assert_eq!(tenant.paste_by_keys().await, "late");
        // An operation that fails leaves the clipboard as it was.
        tenant.js("byId('write').onclick = () => navigator.clipboard.write([new ClipboardItem({ 'text/plain': Promise.reject(new Error('no data')) })]).catch((error) => log(error.name))").await;
        tenant.click_named("write").await;
        assert_eq!(tenant.paste_by_keys().await, "late");
        assert_eq!(tenant.js("document.getElementById('log').textContent.includes('Error')").await, true);
        tenant.instance.dispose().await.unwrap();
    });
}

#[test]
fn half_a_character_is_replaced() {
    with_fixture(async |fixture| {
        let mut tenant = tenant(fixture).await;
        tenant.visit_clipboard_page().await;
        for copy in ["keys", "write"] {
            tenant.js(r"void (byId('from').value = 'half \ud83c!')").await;
            if copy == "keys" {
                tenant.copy_field("from").await;
            } else {
                tenant.click_named("write").await;
            }
            assert_eq!(tenant.paste_by_button().await, "half \u{fffd}!", "{copy}");
            tenant.copy_by_keys("other").await;
        }
        tenant.instance.dispose().await.unwrap();
    });
}

#[test]
fn eight_tenants_copy_and_paste_at_once() {
    with_fixture(async |fixture| {
        let work = async |name: usize| {
            let mut tester = tenant(fixture).await;
            tester.visit_clipboard_page().await;
            for round in 0..50 {
                let text = format!("tenant {name} round {round}");
                match round % 3 {
                    0 => tester.copy_by_keys(&text).await,
                    1 => tester.copy_by_button("execCommand", &text).await,
                    _ => tester.copy_by_button("write", &text).await,
                }
                let pasted = if round % 2 == 0 {
                    tester.paste_by_keys().await
                } else {
                    tester.paste_by_button().await
                };
                assert_eq!(pasted, text);
            }
            tester.instance.dispose().await.unwrap();
        };
        tokio::join!(work(1), work(2), work(3), work(4), work(5), work(6), work(7), work(8));
    });
}
