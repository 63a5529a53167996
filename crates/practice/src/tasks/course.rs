//! Tasks on the obstacle course, which are about operating controls.

use super::{Question, exactly_one};
use crate::course::{THEMES, obstacles};

fn question(
    id: &'static str,
    difficulty: i64,
    start: &str,
    text: &str,
    answer: impl Into<String>,
    criteria: &[&str],
) -> Question {
    Question {
        site: "course",
        domain: "Web controls",
        topic: "Obstacles",
        id,
        difficulty,
        text: text.to_owned(),
        start: start.to_owned(),
        criteria: criteria.iter().map(|criterion| (*criterion).to_owned()).collect(),
        answer: answer.into(),
    }
}

/// Checks that the page contains what the question is about.
fn require(path: &str, parts: &[&str]) -> Option<()> {
    let obstacle = exactly_one(obstacles().filter(|obstacle| obstacle.path == path))?;
    let fragment = obstacle.fragment()?;
    parts.iter().all(|part| fragment.contains(part)).then_some(())
}

pub(super) fn questions() -> Vec<Option<Question>> {
    vec![
        obstacles_of_a_theme(),
        counter(),
        fetched_answer(),
        inner_button(),
        chosen_animal(),
        far_item(),
        upper_case(),
    ]
}

fn obstacles_of_a_theme() -> Option<Question> {
    let theme = THEMES.iter().find(|theme| theme.name == "Windows and dialogs")?;
    let text = "How many obstacles does the course list under the heading “Windows and dialogs”?";
    Some(question(
        "count-of-a-theme",
        2,
        "/course/",
        text,
        theme.obstacles.len().to_string(),
        &["The heading and its obstacles are visible."],
    ))
}

fn counter() -> Option<Question> {
    require("/course/buttons", &["id=\"up\"", "log('count '"])?;
    let text = "Press “Count up” three times. What does the last line of the dark box say?";
    Some(question("counter", 3, "/course/buttons", text, "count 3", &["The count shown is 3."]))
}

fn fetched_answer() -> Option<Question> {
    require("/course/settle/fetch", &["Ask the server", "finish(answer.answer)"])?;
    let text = "Press the button “Ask the server”. Which word appears as the answer?";
    Some(question(
        "fetched-answer",
        3,
        "/course/settle/fetch",
        text,
        "done",
        &["The button was pressed and the answer is visible."],
    ))
}

fn inner_button() -> Option<Question> {
    require("/course/shadow", &["Press ${name}", "name=\"inner\"", "log('pressed ' + name)"])?;
    let text = "Press the button “Press inner”. What does the last line of the dark box say?";
    Some(question(
        "inner-button",
        4,
        "/course/shadow",
        text,
        "pressed inner",
        &["The button “Press inner” was pressed.", "The dark box is visible."],
    ))
}

fn chosen_animal() -> Option<Question> {
    require(
        "/course/select",
        &["id=\"animal\"", "value=\"trout\"", "select.id + ' ' + kind + ' ' + chosen"],
    )?;
    let text = "Choose Trout as the animal. What does the last line of the dark box say?";
    Some(question(
        "chosen-animal",
        5,
        "/course/select",
        text,
        "animal change trout",
        &["Trout is chosen in the box Animal.", "The dark box is visible."],
    ))
}

fn far_item() -> Option<Question> {
    require("/course/infinite", &["data-say=\"clicked ' + text"])?;
    let text = "Scroll down the endless list until Item 45 appears and click it. What does the last line \
         of the dark box at the top then say?";
    Some(question(
        "far-item",
        6,
        "/course/infinite",
        text,
        "clicked Item 45",
        &["Item 45 was reached by scrolling.", "The dark box is visible."],
    ))
}

fn upper_case() -> Option<Question> {
    require("/course/controlled", &["id=\"upper\"", "typed.toUpperCase()", "id=\"state-upper\""])?;
    let text = "Type heron into the field “Upper case” and 2024 into the field “Digits only”, then press \
         Save. What do the two fields hold, in this order?";
    Some(question(
        "upper-case",
        7,
        "/course/controlled",
        text,
        "HERON, 2024",
        &["HERON is shown beside upper.", "2024 is shown beside digits.", "Save was pressed."],
    ))
}
