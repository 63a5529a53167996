//! Writes a drawing as an SVG document of its own: no scripts, no links, text as text.

use std::fmt::Write;

use super::shape::{Anchor, Colour, Drawing, Marker, PAPER, Shape};

pub(super) fn write(drawing: &Drawing) -> String {
    let Drawing { width, height, title, shapes } = drawing;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" font-family=\"system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif\">\n<title>{}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"{}\"/>\n",
        escaped(title),
        hex(PAPER)
    );
    for shape in shapes {
        put(&mut out, shape);
    }
    out.push_str("</svg>\n");
    out
}

fn put(out: &mut String, shape: &Shape) {
    let _ = match shape {
        Shape::Stroke { points, colour, width, is_dashed, opacity } => {
            let dashes = if *is_dashed { " stroke-dasharray=\"6 4\"" } else { "" };
            writeln!(
                out,
                "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\" stroke-linejoin=\"round\"{dashes}{}/>",
                path(points),
                hex(*colour),
                translucent(*opacity)
            )
        }
        Shape::Marker { at, marker, colour, is_hollow, opacity } => {
            let fill = hex(if *is_hollow { PAPER } else { *colour });
            let look = format!(
                "fill=\"{fill}\" stroke=\"{}\" stroke-width=\"1.4\"{}",
                hex(*colour),
                translucent(*opacity)
            );
            let (x, y) = (short(at.0), short(at.1));
            match marker {
                Marker::Circle => {
                    writeln!(out, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{}\" {look}/>", Marker::RADIUS)
                }
                _ => writeln!(out, "<path d=\"{}Z\" {look}/>", path(&marker.corners(*at))),
            }
        }
        Shape::Text { at, text, size, colour, anchor, is_bold } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let weight = if *is_bold { " font-weight=\"600\"" } else { "" };
            writeln!(
                out,
                "<text x=\"{}\" y=\"{}\" font-size=\"{size}\" fill=\"{}\" text-anchor=\"{anchor}\"{weight}>{}</text>",
                short(at.0),
                short(at.1),
                hex(*colour),
                escaped(text)
            )
        }
    };
}

fn path(points: &[(f64, f64)]) -> String {
    let mut out = String::new();
    for (number, (x, y)) in points.iter().enumerate() {
        let letter = if number == 0 { 'M' } else { 'L' };
        let _ = write!(out, "{letter}{} {}", short(*x), short(*y));
    }
    out
}

fn short(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

fn hex(Colour(red, green, blue): Colour) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn translucent(opacity: f64) -> String {
    if opacity < 1.0 { format!(" opacity=\"{opacity}\"") } else { String::new() }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
