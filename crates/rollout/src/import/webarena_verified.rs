//! WebArena-Verified: a JSON list with `task_id`, `intent`, `sites`, `start_urls` and `eval`. Its evaluators look at the
//! agent's answer and at the log of network requests. Checks that need no more than the answer or the last address are
//! mapped; the others are marked as unsupported, and never scored.

use serde_json::{Map, Value, json};

use super::{
    benchmark::{Converted, ImportOptions},
    task_draft::{MEDIUM, TaskDraft, required},
};

/// The sites of the benchmark. Files refer to them as `__NAME__`.
pub const SITES: [&str; 7] =
    ["shopping", "shopping_admin", "reddit", "gitlab", "map", "wikipedia", "homepage"];

/// Formats of answers that the comparison with reference answers understands.
const COMPARED_FORMATS: [&str; 2] = ["currency", "date"];

/// Checks the names and addresses of the sites.
pub(super) fn check_sites(options: &ImportOptions) -> Result<(), String> {
    for (name, url) in &options.sites {
        if !SITES.contains(&name.as_str()) {
            return Err(format!("{name} is not a site of WebArena; its sites are {}", SITES.join(", ")));
        }
        if !url.starts_with("http://") && !url.starts_with("https://") {
            return Err(format!("the address of {name} must start with http:// or https://, not {url:?}"));
        }
    }
    Ok(())
}

pub(super) fn convert(record: &Map<String, Value>, options: &ImportOptions) -> Result<Converted, String> {
    let id = record.get("task_id").filter(|id| id.is_i64() || id.is_string());
    let id = id.ok_or("task_id is missing")?.clone();
    let intent = required(record, "intent")?;
    let sites = strings(record, "sites")?;
    if let Some(site) = sites.iter().find(|site| !options.sites.contains_key(**site)) {
        return if options.skip_other_sites {
            Ok(Converted::Skipped(format!("the site {site} has no address")))
        } else {
            Err(format!(
                "the site {site} has no address; give it with --site {site}=URL, or use --skip-other-sites"
            ))
        };
    }
    let starts: Result<Vec<String>, String> =
        strings(record, "start_urls")?.into_iter().map(|url| resolve(url, options)).collect();
    let starts = starts?;
    let (website, others) = starts.split_first().ok_or("start_urls is empty")?;
    let evaluators = record.get("eval").and_then(Value::as_array).filter(|list| !list.is_empty());
    let judge = match checks(evaluators.ok_or("eval must be a list that is not empty")?, options)? {
        Ok(judge) => judge,
        Err(reason) => json!({ "unsupported": reason }),
    };
    Ok(Converted::Task(Box::new(TaskDraft {
        task_id: id,
        task_name: instruction(intent, others),
        website: website.clone(),
        domain: "WebArena-Verified".into(),
        subdomain: sites.join(", "),
        difficulty: MEDIUM,
        rubric: vec![intent.to_owned()],
        judge: Some(judge),
        ..TaskDraft::default()
    })))
}

/// An episode starts at one page, so the task names the others.
fn instruction(intent: &str, others: &[String]) -> String {
    match others {
        [] => intent.to_owned(),
        others => format!("{intent}\nStart pages beside the first: {}", others.join(" , ")),
    }
}

fn strings<'a>(record: &'a Map<String, Value>, name: &str) -> Result<Vec<&'a str>, String> {
    let list = record.get(name).and_then(Value::as_array).ok_or_else(|| format!("{name} must be a list"))?;
    let strings: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
    strings.ok_or_else(|| format!("{name} must be a list of strings"))
}

/// Replaces `__SITE__` by the address of the site.
fn resolve(url: &str, options: &ImportOptions) -> Result<String, String> {
    let mut resolved = url.to_owned();
    for (name, address) in &options.sites {
        let placeholder = format!("__{}__", name.to_uppercase());
        resolved = resolved.replace(&placeholder, address.trim_end_matches('/'));
    }
    if resolved.contains("__") {
        Err(format!("{url} refers to a site without an address"))
    } else {
        Ok(resolved)
    }
}

/// Why a check cannot be mapped.
type Unsupported = String;

/// Maps the evaluators of a task to checks.
fn checks(evaluators: &[Value], options: &ImportOptions) -> Result<Result<Value, Unsupported>, String> {
    let is = |evaluator: &Value, name: &str| evaluator["evaluator"] == name;
    let (mut response, mut network) = (None, Vec::new());
    for evaluator in evaluators {
        if is(evaluator, "AgentResponseEvaluator") && response.is_none() {
            response = Some(evaluator);
        } else if is(evaluator, "NetworkEventEvaluator") {
            network.push(evaluator);
        } else {
            return Ok(Err(format!("the evaluator {} is not known", evaluator["evaluator"])));
        }
    }
    let Some(response) = response else { return Ok(Err("it has no AgentResponseEvaluator".into())) };
    let expected = &response["expected"];
    if expected["status"] != "SUCCESS" {
        return Ok(Err(
            "the expected result is a refusal, stated in the answer format of WebArena-Verified".into()
        ));
    }
    match (expected["task_type"].as_str(), network.as_slice()) {
        (Some("retrieve"), []) => Ok(answer_check(response)),
        (Some("navigate"), [event]) => url_check(event, options),
        (Some("navigate"), _) => Ok(Err("several requests must be found in the network log".into())),
        _ => Ok(Err("requests that change data must be found in the network log".into())),
    }
}

/// Maps a list of values that the answer must state.
fn answer_check(evaluator: &Value) -> Result<Value, Unsupported> {
    if evaluator["ordered"] == true {
        return Err("the order of the values in the answer counts".into());
    }
    if let Some(format) = evaluator["results_schema"]["items"]["format"].as_str()
        && !COMPARED_FORMATS.contains(&format)
    {
        return Err(format!("the answer has values of the format {format}"));
    }
    let values = evaluator["expected"]["retrieved_data"].as_array();
    let texts: Option<Vec<String>> = values.filter(|values| !values.is_empty()).and_then(|values| {
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(value) => Some(if *value { "yes" } else { "no" }.to_owned()),
            _ => None,
        };
        values.iter().map(text).collect()
    });
    texts
        .map(|texts| json!({ "answer": texts }))
        .ok_or_else(|| "the answer is more than a list of values".into())
}

/// Maps the address that the last navigation must have.
fn url_check(evaluator: &Value, options: &ImportOptions) -> Result<Result<Value, Unsupported>, String> {
    let own = |object: &Value, accepted: [&str; 2]| {
        object.as_object().is_some_and(|fields| fields.keys().all(|name| accepted.contains(&name.as_str())))
    };
    let expected = &evaluator["expected"];
    if !own(evaluator, ["evaluator", "expected"]) || !own(expected, ["url", "query_params"]) {
        return Ok(Err("a request must be found in the network log by more than its address".into()));
    }
    let urls: Option<Vec<&str>> = match &expected["url"] {
        Value::String(url) => Some(vec![url]),
        Value::Array(urls) => urls.iter().map(Value::as_str).collect(),
        _ => None,
    };
    let Some(query) = query(&expected["query_params"]) else {
        return Ok(Err("the parameters of the address are not plain text".into()));
    };
    let Some(urls) = urls.filter(|urls| !urls.iter().any(|url| is_pattern(url))) else {
        return Ok(Err("the address is a regular expression".into()));
    };
    let with_query = |url: String| match (query.is_empty(), url.contains('?')) {
        (true, _) => url,
        (false, true) => format!("{url}&{query}"),
        (false, false) => format!("{url}?{query}"),
    };
    let urls: Result<Vec<String>, String> =
        urls.into_iter().map(|url| resolve(url, options).map(with_query)).collect();
    Ok(Ok(json!({ "url": urls? })))
}

/// Returns whether a text is a regular expression, or would be taken for a pattern of ours.
fn is_pattern(text: &str) -> bool {
    text.starts_with('^') || text.contains('*')
}

/// Encodes the expected query parameters, if each has plain values.
fn query(params: &Value) -> Option<String> {
    let mut encoded = form_urlencoded::Serializer::new(String::new());
    for (name, values) in params.as_object().into_iter().flatten() {
        for value in values.as_array()? {
            let value = value.as_str().filter(|value| !is_pattern(value))?;
            encoded.append_pair(name, value);
        }
    }
    Some(encoded.finish())
}
