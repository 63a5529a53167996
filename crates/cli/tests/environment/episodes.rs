//! Episodes from reset to reward.

use base64::{Engine, engine::general_purpose::STANDARD};
use rustix::process::Signal;
use serde_json::{Value, json};
use testkit::{
    eventually, signal,
    sim_model::{ModelReply, SimModel},
};

use crate::{LIMIT, Server};

#[tokio::test(flavor = "multi_thread")]
async fn right_answer_has_reward_one_and_wrong_answer_zero() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    let first = client.observe("reset", &json!({"task_id": "wiki", "episode_id": "mine"})).await;
    assert_eq!((&first["done"], &first["reward"]), (&json!(false), &Value::Null));
    assert_eq!(first["observation"]["goal"], "look at wiki");
    assert!(first["observation"]["url"].as_str().unwrap().ends_with("/wiki/"));
    let screenshot = STANDARD.decode(first["observation"]["screenshot_base64"].as_str().unwrap()).unwrap();
    assert!(screenshot.starts_with(b"\x89PNG"));
    let answered = client.observe("step", &json!({"answer": "It is 42."})).await;
    assert_eq!((&answered["done"], &answered["reward"]), (&json!(true), &json!(1.0)), "{answered}");
    assert_eq!(answered["metadata"]["outcome"], "success");
    assert_eq!(answered["observation"]["metadata"], answered["metadata"]);
    assert_eq!(client.error_code("step", &json!({"answer": "42"})).await, "EXECUTION_ERROR");
    server.wait_until_released().await;
    let state = client.ask("state", &Value::Null).await;
    assert_eq!((&state["data"]["episode_id"], &state["data"]["step_count"]), (&json!("mine"), &json!(1)));

    client.observe("reset", &json!({"task_id": "shop"})).await;
    let wrong = client.observe("step", &json!({"action_str": "send_msg_to_user('43')"})).await;
    assert_eq!((&wrong["done"], &wrong["reward"]), (&json!(true), &json!(0.0)));
    // The judge's explanation names the reference answer.
    assert_eq!(wrong["metadata"]["reason"], "the episode was judged");
}

/// A session drops its screenshot between steps, so an action that does not change the page needs a new one.
#[tokio::test(flavor = "multi_thread")]
async fn every_observation_has_a_screenshot() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    let mut screenshots = vec![client.observe("reset", &json!({"task_id": "wiki"})).await];
    for action in ["noop(1)", "goto('file:///etc/hostname')", "no_such_action()", "send_msg_to_user('42')"] {
        screenshots.push(client.observe("step", &json!({"action_str": action})).await);
    }
    assert_eq!(screenshots[2]["observation"]["last_action_error"], true, "{}", screenshots[2]["metadata"]);
    assert_eq!(screenshots[4]["done"], true);
    for observed in screenshots {
        let image = observed["observation"]["screenshot_base64"].as_str().unwrap_or_default();
        assert!(STANDARD.decode(image).unwrap().starts_with(b"\x89PNG"), "{}", observed["metadata"]);
    }
}

/// A task with a check of its page is prepared by its script, ends when the check holds, and fails if it never does.
#[tokio::test(flavor = "multi_thread")]
async fn check_of_the_page_ends_the_episode() {
    let server = Server::start(&["--judge=program"]).await;
    let mut client = server.client().await;
    let start = client.observe("reset", &json!({"task_id": "button"})).await;
    let tree = start["observation"]["axtree_txt"].as_str().unwrap();
    assert!(tree.contains("Press"), "{tree}");
    let waited = client.observe("step", &json!({"action_str": "scroll(0, 100)"})).await;
    assert_eq!((&waited["done"], &waited["reward"]), (&json!(false), &json!(0.0)), "{waited}");
    let pressed = client.observe("step", &json!({"action_str": "click('1')"})).await;
    assert_eq!((&pressed["done"], &pressed["reward"]), (&json!(true), &json!(1.0)), "{pressed}");
    client.observe("reset", &json!({"task_id": "button"})).await;
    let given_up = client.observe("step", &json!({"answer": "I cannot"})).await;
    assert_eq!((&given_up["done"], &given_up["reward"]), (&json!(true), &json!(0.0)), "{given_up}");
    client.observe("reset", &json!({"task_id": "wiki"})).await;
    let unjudged = client.observe("step", &json!({"answer": "42"})).await;
    assert_eq!((&unjudged["done"], &unjudged["reward"]), (&json!(true), &Value::Null), "no check: masked");
}

/// Returns the number of the last link in the tree.
fn last_link(observed: &Value) -> String {
    let tree = observed["observation"]["axtree_txt"].as_str().unwrap();
    let line =
        tree.lines().rfind(|line| line.contains("] a '")).unwrap_or_else(|| panic!("no link in {tree}"));
    line[1..line.find(']').unwrap()].to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_form_of_action_reaches_the_page() {
    let server = Server::start(&["--screenshot=jpeg"]).await;
    let mut client = server.client().await;
    let start = client.observe("reset", &json!({"task_id": "wiki"})).await;
    assert_eq!(start["observation"]["screenshot_format"], "jpeg");
    let start_url = start["observation"]["url"].clone();
    let link = last_link(&start);
    let forms = [
        json!({"action_str": format!("click('{link}')")}),
        json!({"action_str": format!("dblclick('{link}')")}),
        json!({"click_id": {"id": link}}),
        json!({"tool_call": {"name": "web_interaction", "arguments": {"action": "click", "element_id": link}}}),
    ];
    for form in forms {
        let clicked = client.observe("step", &form).await;
        assert_ne!(clicked["observation"]["url"], start_url, "{form}: {}", clicked["observation"]["error"]);
        assert_eq!(clicked["reward"], 0.0);
        let back = client.observe("step", &json!({"action_str": "go_back()"})).await;
        assert_eq!(back["observation"]["url"], start_url);
    }
    let result = client.observe("step", &json!({"get_page_metadata": {}})).await;
    assert!(result["observation"]["result"].is_object(), "{result}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unusable_action_is_a_step_and_last_step_is_judged() {
    let server = Server::start(&["env_config.train_difficulty_max_steps.easy=2"]).await;
    let mut client = server.client().await;
    client.observe("reset", &json!({"screenshot": "none"})).await;
    let failed = client.observe("step", &json!({"action_str": "explode('1')"})).await;
    assert_eq!(failed["observation"]["last_action_error"], true);
    assert!(failed["observation"]["error"].as_str().unwrap().contains("unknown action"), "{failed}");
    assert!(failed["observation"].get("screenshot_base64").is_none());
    assert_eq!(client.error_code("step", &json!({"clack": {}})).await, "VALIDATION_ERROR");
    let last = client.observe("step", &json!({"action_str": "noop(1)"})).await;
    assert_eq!((&last["done"], &last["reward"]), (&json!(true), &json!(0.0)), "out of steps: {last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_browser_is_masked_and_never_a_reward() {
    let server = Server::start(&[]).await;
    let mut client = server.client().await;
    client.observe("reset", &json!({})).await;
    for browser in server.webgym.browsers() {
        signal(browser.pid, Signal::KILL);
    }
    let lost = client.observe("step", &json!({"action_str": "scroll(0, 100)"})).await;
    assert_eq!((&lost["done"], &lost["reward"]), (&json!(true), &Value::Null), "{lost}");
    assert_eq!(lost["metadata"]["infra_lost"], true);
    assert_eq!(client.error_code("step", &json!({"answer": "42"})).await, "EXECUTION_ERROR");
    // The farm replaces the browser, and the session goes on with the next episode.
    client.observe("reset", &json!({})).await;
    let answered = client.observe("step", &json!({"answer": "42"})).await;
    assert_eq!(answered["reward"], 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn judge_model_sees_the_screenshots_which_are_removed_afterwards() {
    let judge =
        SimModel::start(|_| ModelReply::Reply("All there.\nYES\nBlocked: NO\nVerdict: SUCCESS".into())).await;
    let address = format!("openai_config.base_url={}/v1", judge.url());
    let mut server = Server::start(&["--judge=model", &address]).await;
    let mut client = server.client().await;
    client.observe("reset", &json!({"screenshot": "none"})).await;
    client.observe("step", &json!({"action_str": "scroll(0, 100)"})).await;
    let judged = client.observe("step", &json!({"answer": "anything"})).await;
    assert_eq!(judged["reward"], 1.0, "{judged}");
    assert!(judge.requests().iter().any(|request| !request.images.is_empty()), "the judge gets screenshots");
    drop(client);
    let folder = server.webgym.folder().to_owned();
    let images = || {
        let below = std::fs::read_dir(&folder)
            .unwrap()
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("webgym-env-"));
        below.flat_map(|entry| std::fs::read_dir(entry.path()).into_iter().flatten()).count()
    };
    eventually("the screenshots are removed with the episode", LIMIT, async || images() == 0).await;
    server.webgym.signal(Signal::INT);
    assert_eq!(server.webgym.wait_for_exit(LIMIT).await.code(), Some(0));
    server.webgym.assert_no_leftovers(LIMIT).await;
}
