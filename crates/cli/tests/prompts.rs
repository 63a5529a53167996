//! `webgym prompts`: the exported templates are those that are built in, and templates that cannot work are refused with
//! the reason.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed helper fails its test")]

use std::{
    path::Path,
    process::{Command, Output},
};

fn prompts(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_webgym")).arg("prompts").args(arguments).output().unwrap()
}

fn output(arguments: &[&str]) -> String {
    let output = prompts(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Checks the templates and returns the error.
fn check_error(policy: Option<&Path>, judge: Option<&Path>) -> String {
    let settings = [
        policy.map(|path| format!("policy_config.prompt_template={}", path.display())),
        judge.map(|path| format!("openai_config.prompt_templates={}", path.display())),
    ];
    let settings: Vec<&str> = settings.iter().flatten().map(String::as_str).collect();
    let output = prompts(&[&["check"], &settings[..]].concat());
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn exported_templates_render_as_built_in_ones() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let listed = output(&["export", out]);
    assert!(listed.contains("policy.jinja") && listed.contains("webgym prompts check"), "{listed}");
    let own = [
        format!("policy_config.prompt_template={out}/policy.jinja"),
        format!("openai_config.prompt_templates={out}/judge"),
    ];
    for mode in ["coordinates", "set_of_marks"] {
        let mode = format!("context_config.interaction_mode={mode}");
        let built_in = output(&["check", &mode]);
        assert_eq!(output(&["check", &mode, &own[0], &own[1]]), built_in);
        assert!(
            built_in.contains("Find the opening hours") && built_in.contains("step_006.png"),
            "{built_in}"
        );
    }
    let again = prompts(&["export", out]);
    let stderr = String::from_utf8_lossy(&again.stderr);
    assert!(!again.status.success() && stderr.contains("--overwrite"), "{stderr}");
    output(&["export", out, "--overwrite"]);
}

#[test]
fn unusable_policy_templates_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("own.jinja");
    let call = "Reply with <tool_call>.";
    for (template, expected) in [
        ("", "it has no line such as {# section: turn #}"),
        (
            "{# section: turns #}\nx",
            "unknown section `turns`; sections are system, tools, summary, turn, reply",
        ),
        ("{# section: turn #}\n{{ screenshot }}\n{{ titel }}", "line 3: unknown variable `titel`"),
        ("{# section: turn #}\n{% if is_current %}{{ nope }}{% endif %}", "unknown variable `nope`"),
        ("{# section: turn #}\nStep {{ step }}", "does not show {{ screenshot }}"),
        ("{# section: turn #}\n\n{{ screenshot", "line 3"),
        ("{# section: system #}\nYou are an agent.", "ask for a JSON object inside <tool_call> tags"),
        ("{# section: turn #}\n{% include 'other' %}{{ screenshot }}", "template not found"),
        ("{# section: turn #}\n{{ screenshot }}{{ task.name }}", "undefined value"),
    ] {
        std::fs::write(&path, template).unwrap();
        let error = check_error(Some(&path), None);
        assert!(error.contains(expected) && error.contains("own.jinja"), "{template}: {error}");
    }
    std::fs::write(&path, format!("{{# section: system #}}\n{call}")).unwrap();
    let shown = output(&["check", &format!("policy_config.prompt_template={}", path.display())]);
    assert!(shown.contains(call) && shown.contains("Step 7"), "the other sections are built in: {shown}");
    assert!(check_error(Some(&folder.path().join("none.jinja")), None).contains("cannot read"));
}

#[test]
fn unusable_judge_templates_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert!(
        check_error(None, Some(folder.path()))
            .contains("it has none of the files system.jinja, keypoint.jinja")
    );
    let supported = "{{ task }}{% for shot in screenshots %}{{ shot.image }}{% endfor %}";
    for (name, template, expected) in [
        ("supportet.jinja", "x", "it is none of system.jinja"),
        ("supported.jinja", "{{ task }} Verdict: {{ rubric }}", "unknown variable `rubric`"),
        ("supported.jinja", "{{ task }} Verdict:", "it does not show the screenshots"),
        ("supported.jinja", supported, "ask for Verdict:, or set the patterns `yes` and `no`"),
        ("keypoint.jinja", supported, "ask for YES or NO"),
        ("supported.jinja", &format!("{supported}{{% set yes = 'PASS' %}}"), "only one of the patterns"),
        (
            "supported.jinja",
            &format!("{supported}{{% set yes = '(' %}}{{% set no = 'FAIL' %}}"),
            "the pattern `yes`",
        ),
        (
            "screenshots.jinja",
            "{% for shot in screenshots %}\n{{ shot.img }}{% endfor %}",
            "line 2: undefined value",
        ),
        ("system.jinja", "{{ task }}", "system has no variables"),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, template).unwrap();
        let error = check_error(None, Some(folder.path()));
        assert!(error.contains(expected) && error.contains(name), "{template}: {error}");
        std::fs::remove_file(path).unwrap();
    }
}
