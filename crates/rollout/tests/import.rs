//! The importers of benchmarks, on hand-written records in the formats of their files.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper is a failed test")]

use std::path::Path;

use rollout::{
    import::{Benchmark, ImportOptions, Imported, MiniwobOptions, import, import_miniwob},
    plan::tasks::TaskFile,
};
use serde_json::{Value, json};

fn options() -> ImportOptions {
    let site = |name: &str, port: u16| (name.to_owned(), format!("http://sites.test:{port}/"));
    ImportOptions {
        website: "https://search.test/".into(),
        sites: [site("shopping", 7770), site("gitlab", 8023)].into_iter().collect(),
        skip_other_sites: false,
    }
}

fn convert(benchmark: Benchmark, content: &str) -> Result<Imported, String> {
    import(benchmark, Path::new("given.file"), content.as_bytes(), &options())
        .map_err(|error| error.to_string())
}

fn tasks(benchmark: Benchmark, content: &str) -> Vec<Value> {
    let imported = convert(benchmark, content).unwrap();
    imported.lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn webvoyager_records_become_tasks() {
    let record = json!({"web_name": "Lamps", "id": "Lamps--0", "ques": "Find a lamp", "web": "https://lamps.test/", "new": 7});
    let imported = convert(Benchmark::Webvoyager, &format!("{record}\n")).unwrap();
    assert_eq!(imported.notes, ["the file has 1 tasks; the published files have 643"]);
    let task: Value = serde_json::from_str(&imported.lines[0]).unwrap();
    let expected = json!({
        "task_id": "Lamps--0", "task_name": "Find a lamp", "website": "https://lamps.test/", "domain": "WebVoyager",
        "subdomain": "Lamps", "difficulty": 5, "evaluator_reference": ["Find a lamp"],
        "source": {"benchmark": "webvoyager", "record": record},
    });
    assert_eq!(task, expected);
}

#[test]
fn online_mind2web_levels_become_difficulties() {
    let record = |id: &str, more: Value| {
        let mut record =
            json!({"task_id": id, "confirmed_task": "Find a lamp", "website": "https://www.lamps.test/"});
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        record
    };
    let list = json!([
        record("a", json!({"level": "easy", "reference_length": 3})),
        record("b", json!({"level": "hard"})),
        record("c", json!({"reference_length": 7})),
        {"task_id": "d", "task_description": "Find a desk", "website": "desks.test", "level": "medium"},
    ]);
    let tasks = tasks(Benchmark::OnlineMind2web, &list.to_string());
    let difficulties: Vec<i64> = tasks.iter().map(|task| task["difficulty"].as_i64().unwrap()).collect();
    assert_eq!(difficulties, [2, 8, 5, 5]);
    assert_eq!(
        (&tasks[0]["subdomain"], &tasks[3]["task_name"]),
        (&json!("lamps.test"), &json!("Find a desk"))
    );
    assert_eq!(tasks[0]["source"]["record"]["reference_length"], 3);
}

#[test]
fn assistantbench_answers_become_references() {
    let lines = [
        json!({"id": "a1", "task": "Which lamp is cheapest?", "answer": "Aurora", "gold_url": "https://x.test", "difficulty": "Medium"}),
        json!({"id": "a2", "task": "Which desk is cheapest?", "answer": null, "difficulty": "Hard"}),
    ];
    let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let tasks = tasks(Benchmark::Assistantbench, &text.join("\n"));
    assert_eq!((&tasks[0]["definite_answer"], &tasks[0]["difficulty"]), (&json!("Aurora"), &json!(5)));
    assert_eq!(tasks[0]["source"]["record"]["difficulty"], "Medium");
    assert!(tasks[1].get("definite_answer").is_none());
    assert_eq!(tasks[1]["evaluator_reference"], json!(["Which desk is cheapest?"]));
    assert_eq!(tasks[1]["website"], "https://search.test/");
}

#[test]
fn browsecomp_is_decrypted() {
    // Encrypted with the reference implementation in Python: "Who wrote it? " three times.
    let text = "27P6mOxFvwLxt+/HtziecEWrAOqvuXBVF3Psg7jk+mv7qfrM/he5Aqu3";
    let csv = format!("problem,answer,problem_topic,canary\n{text},{text},\"Art, music\",canary-1\n");
    let tasks = tasks(Benchmark::Browsecomp, &csv);
    assert_eq!(tasks[0]["task_name"], "Who wrote it? ".repeat(3));
    assert_eq!(tasks[0]["definite_answer"], tasks[0]["task_name"]);
    assert_eq!(
        (&tasks[0]["task_id"], &tasks[0]["subdomain"]),
        (&json!("browsecomp-0"), &json!("Art, music"))
    );
    let kept = json!({"problem_topic": "Art, music", "canary": "canary-1"});
    assert_eq!(tasks[0]["source"]["record"], kept);
    let error = convert(Benchmark::Browsecomp, &format!("{csv}{text},{text},Art,canary-2\n")).unwrap_err();
    assert!(
        error.contains("given.file:3: problem cannot be decrypted with the canary of its row"),
        "{error}"
    );
}

fn webarena(id: i64, expected: &Value, schema: &Value, events: &[Value]) -> Value {
    let mut eval =
        vec![json!({"evaluator": "AgentResponseEvaluator", "results_schema": schema, "expected": expected})];
    eval.extend(events.iter().cloned());
    json!({"task_id": id, "intent": "Do it", "sites": ["gitlab"], "start_urls": ["__GITLAB__"], "eval": eval, "revision": 2})
}

fn webarena_judge(expected: &Value, schema: &Value, events: &[Value]) -> Value {
    let list = json!([webarena(1, expected, schema, events)]);
    tasks(Benchmark::WebarenaVerified, &list.to_string())[0]["judge"].clone()
}

#[test]
fn webarena_checks_are_mapped_or_marked_as_unsupported() {
    let retrieve =
        |data: Value| json!({"task_type": "retrieve", "status": "SUCCESS", "retrieved_data": data});
    let plain = json!({"type": "array", "items": {"type": "string"}});
    let formatted = |format: &str| json!({"type": "array", "items": {"type": "string", "format": format}});
    let navigate = json!({"task_type": "navigate", "status": "SUCCESS", "retrieved_data": null});
    let event = |expected: Value| json!({"evaluator": "NetworkEventEvaluator", "expected": expected});
    let none = json!({"type": "null"});

    assert_eq!(
        webarena_judge(&retrieve(json!(["red", 5, true])), &plain, &[]),
        json!({"answer": ["red", "5", "yes"]})
    );
    assert_eq!(
        webarena_judge(&retrieve(json!([12.5])), &formatted("currency"), &[]),
        json!({"answer": ["12.5"]})
    );
    let issues = event(json!({"url": "__GITLAB__/issues", "query_params": {"label[]": ["help wanted"]}}));
    let expected = json!({"url": ["http://sites.test:8023/issues?label%5B%5D=help+wanted"]});
    assert_eq!(webarena_judge(&navigate, &none, &[issues]), expected);

    let mutate = json!({"task_type": "mutate", "status": "SUCCESS", "retrieved_data": null});
    let refusal = json!({"task_type": "retrieve", "status": "NOT_FOUND_ERROR", "retrieved_data": null});
    let post = event(json!({"url": "__GITLAB__/issues", "http_method": "POST"}));
    let cases = [
        (webarena_judge(&mutate, &none, std::slice::from_ref(&post)), "requests that change data"),
        (webarena_judge(&navigate, &none, std::slice::from_ref(&post)), "by more than its address"),
        (webarena_judge(&navigate, &none, &[event(json!({"url": "^__GITLAB__/.*$"}))]), "regular expression"),
        (webarena_judge(&navigate, &none, &[post.clone(), post]), "several requests"),
        (webarena_judge(&refusal, &none, &[]), "a refusal"),
        (webarena_judge(&retrieve(json!(["5 min"])), &formatted("duration"), &[]), "the format duration"),
        (webarena_judge(&retrieve(json!([{"a": 1}])), &plain, &[]), "more than a list of values"),
        (webarena_judge(&retrieve(json!([])), &plain, &[]), "more than a list of values"),
    ];
    for (judge, reason) in cases {
        assert!(judge["unsupported"].as_str().is_some_and(|text| text.contains(reason)), "{judge}: {reason}");
    }
}

#[test]
fn webarena_import_counts_what_is_unsupported_or_left_out() {
    let retrieve = json!({"task_type": "retrieve", "status": "SUCCESS", "retrieved_data": ["red"]});
    let mutate = json!({"task_type": "mutate", "status": "SUCCESS", "retrieved_data": null});
    let schema = json!({"type": "array", "items": {"type": "string"}});
    let mut other = webarena(3, &retrieve, &schema, &[]);
    other["sites"] = json!(["map"]);
    let list =
        json!([webarena(1, &retrieve, &schema, &[]), webarena(2, &mutate, &schema, &[]), other]).to_string();
    let error = convert(Benchmark::WebarenaVerified, &list).unwrap_err();
    assert!(error.contains("the site map has no address; give it with --site map=URL"), "{error}");
    let skipping = ImportOptions { skip_other_sites: true, ..options() };
    let imported = import(Benchmark::WebarenaVerified, Path::new("x"), list.as_bytes(), &skipping).unwrap();
    assert_eq!(imported.lines.len(), 2);
    let notes = imported.notes.join("\n");
    assert!(notes.contains("1 tasks were left out: the site map has no address"), "{notes}");
    assert!(notes.contains("1 of 2 tasks stay unjudged with judge=program"), "{notes}");
    let wrong = ImportOptions { sites: [("shop".to_owned(), "http://x".to_owned())].into(), ..options() };
    let error = import(Benchmark::WebarenaVerified, Path::new("x"), b"[]", &wrong).unwrap_err().to_string();
    assert!(error.contains("shop is not a site of WebArena; its sites are shopping, "), "{error}");
}

#[test]
fn bad_record_is_named_by_its_line_and_nothing_is_converted() {
    let good =
        json!({"web_name": "Lamps", "id": "Lamps--0", "ques": "Find a lamp", "web": "https://lamps.test/"});
    let text = format!("{good}\n\nnot json\n{good}\n{{\"id\": \"x\"}}\n");
    let error = convert(Benchmark::Webvoyager, &text).unwrap_err();
    let expected = [
        "3 lines are not a task",
        "given.file:3: not JSON, at column",
        "given.file:4: the id \"Lamps--0\" is already used in line 1",
        "given.file:5: web_name is missing",
    ];
    for part in expected {
        assert!(error.contains(part), "{error}");
    }
    let latin: &[u8] = b"\xef\xbb\xbf\n\xfc\n";
    let error = import(Benchmark::Webvoyager, Path::new("x"), latin, &options()).unwrap_err().to_string();
    assert!(error.contains("x:2: not UTF-8"), "{error}");
    assert!(convert(Benchmark::Webvoyager, &format!("\u{feff}{good}")).is_ok());
    assert!(convert(Benchmark::OnlineMind2web, "{}").unwrap_err().contains("given.file:1: not a JSON list"));
}

#[test]
fn miniwob_pages_become_tasks_with_seeds() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("miniwob")).unwrap();
    for name in ["click-test.html", "drag-box.html", "notes.txt"] {
        std::fs::write(folder.path().join("miniwob").join(name), "").unwrap();
    }
    let options = MiniwobOptions {
        base_url: "http://127.0.0.1:8000/".into(),
        seeds: 2,
        pages: Vec::new(),
        episode_seconds: 60,
    };
    let imported = import_miniwob(folder.path(), &options).unwrap();
    assert_eq!(imported.lines.len(), 4);
    let task: Value = serde_json::from_str(&imported.lines[1]).unwrap();
    assert_eq!(task["task_id"], "click-test-1");
    assert_eq!(task["website"], "http://127.0.0.1:8000/miniwob/click-test.html?seed=1");
    let setup = task["setup"].as_str().unwrap();
    assert!(setup.contains("seedrandom(1)") && setup.contains("EPISODE_MAX_TIME = 60000"), "{setup}");
    let file = folder.path().join("tasks.jsonl");
    std::fs::write(&file, imported.lines.join("\n")).unwrap();
    let read = TaskFile::open(&file, false).unwrap();
    let mut keys: Vec<_> = read.entries().iter().map(|entry| entry.key).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 4, "tasks with different seeds are distinct");
    let unknown = MiniwobOptions { pages: vec!["fly".into()], ..options };
    let error = import_miniwob(folder.path(), &unknown).unwrap_err().to_string();
    assert_eq!(error, "there is no page fly; there are click-test, drag-box");
}
