//! From values to the rendered SVG and PNG.

use store::Split;

use super::chart::{Chart, Charts, Line, Measure, Series};
use super::{png, svg};

fn series(split: Split, line: Line, values: &[Option<f64>]) -> Series {
    let iterations = (0..values.len() as u64).collect();
    Series { split, line, iterations, values: values.to_vec(), smoothed: None }
}

fn charts(measure: Measure, series: Vec<Series>) -> Charts {
    let chart = Chart {
        measure,
        title: measure.title(),
        explanation: measure.explanation(),
        unit: measure.unit(),
        series,
    };
    Charts { ema: None, trajectories: 1, charts: vec![chart] }
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
