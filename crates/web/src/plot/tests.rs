//! From values to the rendered SVG and PNG.

use store::Split;

use super::chart::{Chart, Charts, Line, Measure, Series, XAxis};
use super::{png, svg};

fn series(split: Split, line: Line, values: &[Option<f64>]) -> Series {
    let iterations: Vec<u64> = (0..values.len() as u64).collect();
    Series { split, line, x: iterations.clone(), iterations, values: values.to_vec(), smoothed: None }
}

fn charts(measure: Measure, series: Vec<Series>) -> Charts {
    let chart = Chart {
        measure,
        title: measure.title(),
        explanation: measure.explanation(),
        unit: measure.unit(),
        series,
    };
    Charts { ema: None, x: XAxis::Iterations, is_ood_only: false, trajectories: 1, charts: vec![chart] }
}

fn lines<'a>(drawing: &'a str, part: &str) -> Vec<&'a str> {
    drawing.lines().filter(|line| line.contains(part)).collect()
}

#[test]
fn values_are_drawn_at_their_height() {
    let values = [Some(0.0), Some(1.0), Some(0.5)];
    let drawing = svg(&charts(Measure::Success, vec![series(Split::Train, Line::Easy, &values)]));
    // The plot is 334 wide from 70 and 182 high from 126: 0 at the bottom, 1 at the top, 0.5 halfway.
    let stroke = lines(&drawing, "stroke-width=\"2\" stroke-linejoin=\"round\"/>");
    assert!(stroke.iter().any(|line| line.contains("d=\"M70 308L237 126L404 217\"")), "{stroke:?}");
    assert_eq!(
        lines(&drawing, "#009e73").len(),
        3 + 1 + 2,
        "three markers and the line, and both again in the legend"
    );
    for label in ["0 %", "25 %", "50 %", "75 %", "100 %", "iteration", "of trajectories with a verdict"] {
        assert!(drawing.contains(&format!(">{label}</text>")), "{label}");
    }
}

#[test]
fn trajectories_are_drawn_at_their_number() {
    let mut uneven = series(Split::Train, Line::Easy, &[Some(0.0), Some(1.0), Some(0.5)]);
    uneven.x = vec![1000, 1500, 3000];
    let mut charts = charts(Measure::Success, vec![uneven]);
    (charts.x, charts.is_ood_only) = (XAxis::Trajectories, true);
    let drawing = svg(&charts);
    // A quarter of the width of 334 is 83.5.
    assert!(drawing.contains("d=\"M70 308L153.5 126L404 217\""), "{drawing}");
    for label in ["1000", "3000", "trajectories of the split so far"] {
        assert!(drawing.contains(&format!(">{label}</text>")), "{label}");
    }
    assert!(drawing.contains("<title>Metrics by number of trajectories (of test tasks only those"));
}

#[test]
fn charts_share_x_axis() {
    let mut both =
        charts(Measure::Success, vec![series(Split::Train, Line::Easy, &[Some(0.0), Some(1.0), Some(0.0)])]);
    both.charts.extend(
        charts(Measure::PassAtK, vec![series(Split::Test, Line::Hard, &[Some(0.0), Some(1.0)])]).charts,
    );
    // The second chart is 400 to the right; its iteration 1 is at half of the width of 334.
    let drawing = svg(&both);
    assert!(drawing.contains("d=\"M470 308L637 126\""), "{drawing}");
}

/// A line of text in the image is about 0.55 of its size wide per character.
#[test]
fn titles_and_explanations_fit_their_charts() {
    for measure in Measure::ALL {
        let width = |text: &str, size: f64| text.chars().count() as f64 * size * 0.55;
        let longest = width(measure.title(), 15.0).max(width(measure.explanation(), 11.5));
        assert!(longest < 394.0, "{measure:?} needs {longest}");
    }
}

#[test]
fn gap_splits_line_and_test_is_dashed() {
    let values = [Some(1.0), Some(2.0), None, Some(3.0), Some(4.0)];
    let drawing = svg(&charts(Measure::Steps, vec![series(Split::Test, Line::Hard, &values)]));
    let dashed = lines(&drawing, "stroke-dasharray");
    let of_data = dashed.iter().filter(|line| line.contains("#d55e00")).count();
    assert_eq!(of_data, 2, "{dashed:?}");
    assert_eq!(lines(&drawing, "fill=\"#ffffff\" stroke=\"#d55e00\"").len(), 4);
    assert!(drawing.contains(">test (hollow)</text>") && !drawing.contains(">train</text>"));
}

#[test]
fn single_iteration_and_empty_chart_are_drawn() {
    let single = charts(Measure::Blocked, vec![series(Split::Train, Line::Overall, &[Some(0.25)])]);
    assert_eq!(lines(&svg(&single), "<circle").len(), 2, "the point and the legend entry");
    let empty = charts(Measure::Blocked, Vec::new());
    assert!(svg(&empty).contains("no data"));
    let extreme =
        charts(Measure::Steps, vec![series(Split::Train, Line::Overall, &[Some(f64::MAX), Some(0.0)])]);
    assert!(!svg(&extreme).contains("NaN"));
}

#[test]
fn png_has_double_size_and_line_colours() {
    let values = [Some(0.2), Some(0.8)];
    let image = png(&charts(Measure::Success, vec![series(Split::Train, Line::Medium, &values)])).unwrap();
    let mut reader = ::png::Decoder::new(std::io::Cursor::new(&image)).read_info().unwrap();
    let (width, height) = (reader.info().width, reader.info().height);
    assert_eq!((width, height), (2472, 732));
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    let count = |colour: [u8; 3]| pixels.chunks_exact(3).filter(|pixel| **pixel == colour).count();
    assert!(count([0x00, 0x72, 0xb2]) > 500, "the line is drawn");
    assert!(count([0x00, 0x9e, 0x73]) == 0, "no line of another class is drawn");
    assert!(count([0xff, 0xff, 0xff]) > pixels.len() / 3 * 9 / 10);
}
