"""Chapter 10 shows every row of presets.toml as the file has it."""

import pytest

import quantspec as qs
from quantspec_conformance.spec import spec_root

PAGE = (spec_root() / "10-policies.md").read_text("utf-8")


@pytest.mark.parametrize("name", qs.RECIPES)
def test_the_steps_of_every_recipe_are_on_the_page(name: str) -> None:
    assert f"**{name}**\n\n```text\n{qs.RECIPES[name].text}\n```\n" in PAGE


@pytest.mark.parametrize("name", qs.CODECS)
def test_the_members_of_every_codec_are_on_the_page(name: str) -> None:
    row = qs.CODECS[name]
    members = (row.rounding, row.overflow, row.nan, row.nan_integer, row.zero_sign, row.negative_zero)
    assert f"| `{name}` | {' | '.join(members)} |\n" in PAGE


@pytest.mark.parametrize("name", qs.CONTAINERS)
def test_the_members_of_every_container_are_on_the_page(name: str) -> None:
    row = qs.CONTAINERS[name]
    fields = " ".join([row.field_order, *map(str, row.fields)])
    assert f"| `{name}` | {fields} | {row.bias} | {row.word_order} | {row.scale_layout} | {row.stream} |\n" in PAGE


@pytest.mark.parametrize("name", qs.PRESETS)
def test_every_preset_is_on_the_page_with_its_version_source_and_note(name: str) -> None:
    row = qs.PRESETS[name]
    names = (row.stack, row.recipe.name, row.codec.name, row.container.name)
    schemes = " ".join(f"`{pattern}`" for pattern in row.schemes)
    assert f"| `{name}` | {row.version} | {' | '.join(names)} | {schemes} | " in PAGE
    assert f"- **{name}**: {row.note} Source: {row.source}.\n" in PAGE
