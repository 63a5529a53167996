//! Tasks on the obstacle course: not what one knows, but what one can operate.

use super::{Question, only};
use crate::course::{THEMES, obstacles};

fn ask(
    id: &'static str,
    difficulty: i64,
    start: &str,
    words: &str,
    answer: impl Into<String>,
    facts: &[&str],
) -> Question {
    Question {
        site: "course",
        domain: "Web controls",
        topic: "Obstacles",
        id,
        difficulty,
        words: words.to_owned(),
        start: start.to_owned(),
        facts: facts.iter().map(|fact| (*fact).to_owned()).collect(),
        answer: answer.into(),
    }
}

/// `None` when the page does not hold what the question is about.
fn holding(path: &str, parts: &[&str]) -> Option<()> {
    let obstacle = only(obstacles().filter(|obstacle| obstacle.path == path))?;
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
    let words = "How many obstacles does the course list under the heading “Windows and dialogs”?";
    Some(ask(
        "count-of-a-theme",
        2,
        "/course/",
        words,
        theme.obstacles.len().to_string(),
        &["The heading \
         and its obstacles are visible."],
    ))
}

fn counter() -> Option<Question> {
    holding("/course/buttons", &["id=\"up\"", "log('count '"])?;
    let words = "Press “Count up” three times. What does the last line of the dark box say?";
    Some(ask("counter", 3, "/course/buttons", words, "count 3", &["The count shown is 3."]))
}

fn fetched_answer() -> Option<Question> {
    holding("/course/settle/fetch", &["Ask the server", "finish(answer.answer)"])?;
    let words = "Press the button “Ask the server”. Which word appears as the answer?";
    Some(ask(
        "fetched-answer",
        3,
        "/course/settle/fetch",
        words,
        "done",
        &["The button was pressed and the \
         answer is visible."],
    ))
}

fn inner_button() -> Option<Question> {
    holding("/course/shadow", &["Press ${name}", "name=\"inner\"", "log('pressed ' + name)"])?;
    let words = "Press the button “Press inner”. What does the last line of the dark box say?";
    Some(ask(
        "inner-button",
        4,
        "/course/shadow",
        words,
        "pressed inner",
        &["The button “Press inner” was pressed.", "The dark box is visible."],
    ))
}

fn chosen_animal() -> Option<Question> {
    holding(
        "/course/select",
        &["id=\"animal\"", "value=\"trout\"", "select.id + ' ' + kind + ' ' + chosen"],
    )?;
    let words = "Choose Trout as the animal. What does the last line of the dark box say?";
    Some(ask(
        "chosen-animal",
        5,
        "/course/select",
        words,
        "animal change trout",
        &["Trout is chosen in the box Animal.", "The dark box is visible."],
    ))
}

fn far_item() -> Option<Question> {
    holding("/course/infinite", &["data-say=\"clicked ' + text"])?;
    let words = "Scroll down the endless list until Item 45 appears and click it. What does the last line \
         of the dark box at the top then say?";
    Some(ask(
        "far-item",
        6,
        "/course/infinite",
        words,
        "clicked Item 45",
        &["Item 45 was reached by scrolling.", "The dark box is visible."],
    ))
}

fn upper_case() -> Option<Question> {
    holding("/course/controlled", &["id=\"upper\"", "typed.toUpperCase()", "id=\"state-upper\""])?;
    let words = "Type heron into the field “Upper case” and 2024 into the field “Digits only”, then press \
         Save. What do the two fields hold, in this order?";
    Some(ask(
        "upper-case",
        7,
        "/course/controlled",
        words,
        "HERON, 2024",
        &["HERON is shown beside upper.", "2024 is shown beside digits.", "Save was pressed."],
    ))
}
