//! Pictures of the products, drawn as inline SVG from the shelf they stand on and the colour they have.

use maud::{Markup, PreEscaped, html};

use super::catalog::{Category, Product};

/// The shape of each shelf; `F` is where the colour of the product goes, `D` a darker one.
const SHAPES: &[(&str, &str)] = &[
    (
        "lighting",
        r#"<path d="M78 44 L122 44 L142 92 L58 92 Z" fill="F"/><path d="M66 92 A34 22 0 0 0 134 92 Z" fill="D" opacity=".35"/>
<rect x="97" y="92" width="6" height="52" fill="D"/><rect x="72" y="144" width="56" height="9" rx="4.5" fill="D"/>"#,
    ),
    (
        "kitchen",
        r#"<rect x="52" y="78" width="96" height="66" rx="12" fill="F"/><rect x="46" y="68" width="108" height="13" rx="6.5" fill="D"/>
<rect x="92" y="54" width="16" height="14" rx="4" fill="D"/><rect x="30" y="90" width="24" height="10" rx="5" fill="D"/><rect x="146" y="90" width="24" height="10" rx="5" fill="D"/>"#,
    ),
    (
        "audio",
        r#"<path d="M50 112 V100 A50 50 0 0 1 150 100 V112" fill="none" stroke="D" stroke-width="10"/>
<rect x="38" y="100" width="26" height="48" rx="12" fill="F"/><rect x="136" y="100" width="26" height="48" rx="12" fill="F"/>"#,
    ),
    (
        "garden",
        r##"<path d="M64 104 H136 L126 152 H74 Z" fill="F"/><rect x="58" y="94" width="84" height="13" rx="4" fill="D"/>
<path d="M100 94 C100 70 78 62 66 50 C92 46 102 62 100 94 C102 56 118 44 140 42 C136 64 116 72 100 94 Z" fill="#4f8a5b"/>"##,
    ),
    (
        "office",
        r#"<rect x="36" y="88" width="128" height="12" rx="4" fill="F"/><rect x="46" y="100" width="9" height="52" fill="D"/><rect x="145" y="100" width="9" height="52" fill="D"/>
<rect x="76" y="46" width="54" height="34" rx="4" fill="D"/><rect x="99" y="80" width="8" height="8" fill="D"/>"#,
    ),
    (
        "outdoor",
        r#"<path d="M100 48 L168 146 H32 Z" fill="F"/><path d="M100 48 L122 146 H78 Z" fill="D"/><path d="M100 48 L108 40" stroke="D" stroke-width="5"/>"#,
    ),
    (
        "toys",
        r#"<rect x="44" y="100" width="48" height="48" rx="8" fill="F"/><rect x="104" y="100" width="48" height="48" rx="8" fill="D"/>
<path d="M98 48 L124 92 H72 Z" fill="F"/><circle cx="128" cy="124" r="12" fill="F"/><circle cx="68" cy="124" r="12" fill="D"/>"#,
    ),
    (
        "books",
        r##"<rect x="62" y="44" width="78" height="108" rx="6" fill="F"/><rect x="62" y="44" width="14" height="108" rx="6" fill="D"/>
<rect x="88" y="66" width="40" height="6" rx="3" fill="#fff" opacity=".8"/><rect x="88" y="80" width="28" height="6" rx="3" fill="#fff" opacity=".6"/>"##,
    ),
];

/// Name of a colour, the colour, and a darker one.
const COLOURS: &[(&str, &str, &str)] = &[
    ("White", "#f3f1ea", "#b9b4a6"),
    ("Cream", "#efe3c8", "#bfa877"),
    ("Warm white", "#f7e3a6", "#c9a54a"),
    ("Clear", "#d7eaf0", "#8fb3bf"),
    ("Silver", "#c9ced6", "#7d8694"),
    ("Grey", "#9aa3af", "#5c6470"),
    ("Black", "#3a3f4a", "#1c2028"),
    ("Brass", "#d2a84a", "#8c6c25"),
    ("Copper", "#c77b4b", "#84492a"),
    ("Oak", "#d3a873", "#93693a"),
    ("Walnut", "#8a5a3b", "#55341f"),
    ("Beech", "#e3bf8c", "#a97d47"),
    ("Larch", "#cf9a62", "#8b5e30"),
    ("Cork", "#c9a06c", "#8a683c"),
    ("Terracotta", "#c8693f", "#8a4325"),
    ("Red", "#c9403a", "#862622"),
    ("Orange", "#e58a36", "#a35a17"),
    ("Green", "#4f9168", "#2d5b3f"),
    ("Teal", "#2f8f8b", "#1b5a57"),
    ("Blue", "#3f74b8", "#254a7c"),
    ("Navy", "#2d4370", "#182747"),
    ("Mixed", "#e0a53b", "#3f74b8"),
];

pub(crate) fn picture(category: &Category, product: &Product) -> Markup {
    let shape = SHAPES.iter().find(|(slug, _)| *slug == category.slug).map_or("", |(_, shape)| shape);
    let (light, dark) = colours(product.colour);
    let shape = shape.replace("\"F\"", &format!("\"{light}\"")).replace("\"D\"", &format!("\"{dark}\""));
    let hue = product.slug.bytes().fold(0_u32, |sum, byte| sum * 31 % 360 + u32::from(byte)) % 360;
    html! {
        svg.picture viewBox="0 0 200 190" role="img" aria-label={ "Picture of " (product.name) } {
            rect width="200" height="190" fill={ "hsl(" (hue) " 42% 93%)" } {}
            ellipse cx="100" cy="158" rx="66" ry="9" fill={ "hsl(" (hue) " 25% 80%)" } {}
            (PreEscaped(shape))
        }
    }
}

fn colours(name: &str) -> (&'static str, &'static str) {
    COLOURS
        .iter()
        .find(|(known, _, _)| *known == name)
        .map_or(("#9aa3af", "#5c6470"), |(_, light, dark)| (light, dark))
}

#[cfg(test)]
mod tests {
    use super::super::catalog::products;
    use super::*;

    #[test]
    fn every_product_has_a_shape_and_a_colour() {
        for (category, product) in products() {
            assert!(SHAPES.iter().any(|(slug, _)| *slug == category.slug), "{}", category.slug);
            assert!(COLOURS.iter().any(|(name, _, _)| *name == product.colour), "{}", product.colour);
        }
    }
}
