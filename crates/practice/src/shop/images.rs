//! Product images: inline SVG drawn from the shape of the category and the colour of the product.

use std::sync::LazyLock;

use maud::{Markup, PreEscaped, html};
use serde::Deserialize;

use super::catalog::{Category, Product};
use crate::data;

/// The shape of each category. `F` is replaced by the product's colour, `D` by its dark shade.
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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Colour {
    name: &'static str,
    light: &'static str,
    dark: &'static str,
}

static COLOURS: LazyLock<Vec<Colour>> = LazyLock::new(|| data::load!("shop/colours.json"));

pub(crate) fn product_image(category: &Category, product: &Product) -> Markup {
    let shape = SHAPES.iter().find(|(slug, _)| *slug == category.slug).map_or("", |(_, shape)| shape);
    let (light, dark) = shades(product.colour);
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

/// Returns the light and the dark shade of a colour.
fn shades(name: &str) -> (&'static str, &'static str) {
    COLOURS
        .iter()
        .find(|colour| colour.name == name)
        .map_or(("#9aa3af", "#5c6470"), |colour| (colour.light, colour.dark))
}

#[cfg(test)]
mod tests {
    use super::super::catalog::products;
    use super::*;

    #[test]
    fn every_product_has_shape_and_colour() {
        for (category, product) in products() {
            assert!(SHAPES.iter().any(|(slug, _)| *slug == category.slug), "{}", category.slug);
            assert!(COLOURS.iter().any(|colour| colour.name == product.colour), "{}", product.colour);
        }
    }
}
