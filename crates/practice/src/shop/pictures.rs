//! Pictures of the products, drawn as inline SVG from the shelf they stand on and the colour they have.

use maud::{Markup, PreEscaped, html};

use super::catalog::{Category, Product};

/// The shape of each shelf; `F` is where the colour of the product goes, `D` a darker one.
const SHAPES: &[(&str, &str)] = &[
    ("lighting", include_str!("../../assets/shop/lighting.svg")),
    ("kitchen", include_str!("../../assets/shop/kitchen.svg")),
    ("audio", include_str!("../../assets/shop/audio.svg")),
    ("garden", include_str!("../../assets/shop/garden.svg")),
    ("office", include_str!("../../assets/shop/office.svg")),
    ("outdoor", include_str!("../../assets/shop/outdoor.svg")),
    ("toys", include_str!("../../assets/shop/toys.svg")),
    ("books", include_str!("../../assets/shop/books.svg")),
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
