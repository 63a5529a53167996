//! Renders a drawing as a standalone SVG document without scripts or links.

use std::fmt::Write;

use super::shapes::{Anchor, BACKGROUND, Colour, Drawing, Marker, Shape};

pub(super) fn render(drawing: &Drawing) -> String {
    let Drawing { width, height, title, shapes } = drawing;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" font-family=\"system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif\">\n<title>{}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"{}\"/>\n",
        escape(title),
        hex(BACKGROUND)
    );
    for shape in shapes {
        write_shape(&mut out, shape);
    }
    out.push_str("</svg>\n");
    out
}

fn write_shape(out: &mut String, shape: &Shape) {
    let _ = match shape {
        Shape::Stroke { points, colour, width, is_dashed, opacity } => {
            let dashes = if *is_dashed { " stroke-dasharray=\"6 4\"" } else { "" };
            writeln!(
                out,
                "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\" stroke-linejoin=\"round\"{dashes}{}/>",
                path(points),
                hex(*colour),
                opacity_attribute(*opacity)
            )
        }
        Shape::Marker { centre, marker, colour, is_hollow, opacity } => {
            let fill = hex(if *is_hollow { BACKGROUND } else { *colour });
            let style = format!(
                "fill=\"{fill}\" stroke=\"{}\" stroke-width=\"1.4\"{}",
                hex(*colour),
                opacity_attribute(*opacity)
            );
            let (x, y) = (rounded(centre.0), rounded(centre.1));
            match marker {
                Marker::Circle => {
                    writeln!(out, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{}\" {style}/>", Marker::RADIUS)
                }
                _ => writeln!(out, "<path d=\"{}Z\" {style}/>", path(&marker.corners(*centre))),
            }
        }
        Shape::Text { position, text, size, colour, anchor, is_bold } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let weight = if *is_bold { " font-weight=\"600\"" } else { "" };
            writeln!(
                out,
                "<text x=\"{}\" y=\"{}\" font-size=\"{size}\" fill=\"{}\" text-anchor=\"{anchor}\"{weight}>{}</text>",
                rounded(position.0),
                rounded(position.1),
                hex(*colour),
                escape(text)
            )
        }
    };
}

fn path(points: &[(f64, f64)]) -> String {
    let mut out = String::new();
    for (number, (x, y)) in points.iter().enumerate() {
        let command = if number == 0 { 'M' } else { 'L' };
        let _ = write!(out, "{command}{} {}", rounded(*x), rounded(*y));
    }
    out
}

fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

fn hex(Colour(red, green, blue): Colour) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn opacity_attribute(opacity: f64) -> String {
    if opacity < 1.0 { format!(" opacity=\"{opacity}\"") } else { String::new() }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
