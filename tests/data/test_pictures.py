"""One decoding path: whatever lies in the file, the same three channels come out."""

import contextlib
import io
import struct
import tracemalloc

import numpy as np
import pytest
from photos import chunk, noise, packed, png, raw_png
from PIL import Image, ImageOps

from qkv.data.pictures import CUT_OFF, OVERSIZE, UNREADABLE, PictureError, decode
from qkv.errors import DataError

BLACK, WHITE = (0, 0, 0), (255, 255, 255)


def half_black(orientation: int, form: str = "JPEG") -> bytes:
    """4 wide, 2 high, left half black; stored with an orientation."""
    pixels = np.zeros((2, 4, 3), np.uint8)
    pixels[:, 2:] = 255
    exif = Image.Exif()
    exif[0x0112] = orientation
    how = {"quality": 100, "subsampling": 0} if form == "JPEG" else {}
    return packed(Image.fromarray(pixels), form, exif=exif, **how)


@pytest.mark.parametrize("form", ["JPEG", "PNG", "TIFF", "WEBP"])
def test_a_phone_picture_is_turned_upright(form):
    """BL-19: orientation 6 is 2 wide and 4 high, black on top."""
    how = half_black(6, form)
    pixels, mended = decode(how)
    assert pixels.shape == (4, 2, 3) and "turned" in mended
    assert pixels[0].max() < 60 and pixels[3].min() > 195


@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_orientation_is_what_pillow_says(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    raw = packed(Image.fromarray(noise(1)), exif=exif)
    expected = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(raw))))
    assert (decode(raw).pixels == expected).all()


def test_grey_becomes_three_equal_channels():
    """BL-17: 28 x 28 grey, with and without alpha."""
    grey = noise(2, 28, 28)[:, :, 0]
    pixels, mended = decode(packed(Image.fromarray(grey)))
    assert (pixels == grey[:, :, None]).all() and pixels.shape == (28, 28, 3) and mended == ("grey",)
    alpha = Image.merge("LA", (Image.fromarray(grey), Image.new("L", (28, 28), 255)))
    pixels, mended = decode(packed(alpha))
    assert (pixels == grey[:, :, None]).all() and mended == ("transparent", "grey")
    assert decode(packed(Image.new("1", (3, 3), 1))).pixels.tolist() == [[list(WHITE)] * 3] * 3


def test_transparent_pixels_lie_on_white():
    """BL-17: a pixel (0, 0, 0, 0) is white, not black; half transparent is half way."""
    clear = packed(Image.new("RGBA", (1, 1), (0, 0, 0, 0)))
    assert decode(clear).pixels.tolist() == [[list(WHITE)]]
    half = decode(packed(Image.new("RGBA", (1, 1), (0, 0, 0, 128)))).pixels
    assert abs(int(half[0, 0, 0]) - 127) <= 1
    palette = Image.new("P", (2, 1))
    palette.putpalette([255, 0, 0, 0, 0, 255])
    palette.putpixel((1, 0), 1)
    pixels, mended = decode(packed(palette, transparency=0))
    assert pixels.tolist() == [[list(WHITE), [0, 0, 255]]] and mended == ("palette", "transparent")
    pixels, mended = decode(packed(palette))
    assert pixels.tolist() == [[[255, 0, 0], [0, 0, 255]]] and mended == ("palette",)


def test_sixteen_bits_are_scaled_not_cut_off():
    values = np.array([[0, 257, 300, 25700, 65535]], np.uint16)
    pixels, mended = decode(packed(Image.fromarray(values)))
    assert pixels[0, :, 0].tolist() == [0, 1, 1, 100, 255] and mended == ("16-bit", "grey")
    assert (pixels[..., 0] == pixels[..., 1]).all()
    assert decode(packed(Image.fromarray(values), "TIFF")).pixels[0, :, 2].tolist() == [0, 1, 1, 100, 255]
    rows = b"\0" + struct.pack(">6H", 0, 25700, 65535, 257, 65535, 0)
    pixels, mended = decode(raw_png(2, 1, 16, 2, rows))
    assert pixels.tolist() == [[[0, 100, 255], [1, 255, 0]]] and mended == ("16-bit",)
    hidden = raw_png(2, 1, 16, 2, rows, chunk(b"tRNS", struct.pack(">3H", 0, 25700, 65535)))
    assert decode(hidden).pixels.tolist() == [[list(WHITE), [1, 255, 0]]]
    grey = raw_png(2, 1, 16, 0, b"\0" + struct.pack(">2H", 7, 65535), chunk(b"tRNS", struct.pack(">H", 7)))
    assert decode(grey).pixels.tolist() == [[list(WHITE), list(WHITE)]]


def test_cmyk_is_neither_inverted_nor_refused():
    pixels, mended = decode(packed(Image.new("CMYK", (4, 4), (0, 255, 255, 0)), "JPEG", quality=95))
    assert mended == ("CMYK",) and abs(pixels[0, 0].astype(int) - (255, 0, 0)).max() <= 6


@pytest.mark.parametrize("form", ["GIF", "WEBP", "PNG"])
def test_the_first_frame_of_an_animation_is_taken(form):
    frames = [Image.new("RGB", (4, 4), colour) for colour in (BLACK, WHITE, (255, 0, 0))]
    raw = packed(frames[0], form, save_all=True, append_images=frames[1:])
    pixels, mended = decode(raw)
    assert pixels.max() <= 2 and "animated" in mended


def test_other_values_are_refused_by_name():
    raw = packed(Image.fromarray(np.ones((2, 2), np.float32)), "TIFF")
    with pytest.raises(PictureError, match=r"a\.tif: the picture holds floating-point values.*16-bit PNG"):
        decode(raw, "a.tif")
    with pytest.raises(PictureError, match=r"values from 0 to 70,000; expected 16 bits"):
        decode(packed(Image.fromarray(np.array([[0, 70_000]], np.int32)), "TIFF"), "a.tif")


@pytest.mark.parametrize("header", [raw_png(20_000, 20_000, 8, 2, b""), raw_png(10_000, 9_000, 8, 2, b"")])
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_a_large_header_is_refused_before_memory_is_taken(header):
    tracemalloc.start()
    try:
        with pytest.raises(PictureError, match=r"big\.png: .* pixels.*; expected at most 89,478,485 pixels") as caught:
            decode(header, "big.png")
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
    assert caught.value.kind == OVERSIZE


@pytest.mark.parametrize("form", ["JPEG", "PNG", "BMP", "TIFF"])
def test_a_cut_off_file_is_one_clear_error(form, monkeypatch):
    whole = packed(Image.fromarray(noise(3, 64, 64)), form)
    with pytest.raises(
        DataError, match=r"cat\.x: the picture is cut off or damaged \(.*\)\. Copy or download"
    ) as caught:
        decode(whole[: len(whole) // 2], "cat.x")
    assert caught.value.kind == CUT_OFF


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF"])
def test_damage_anywhere_is_a_picture_or_a_data_error(form):
    whole = packed(Image.fromarray(noise(4, 24, 24)), form)
    chance = np.random.default_rng(0)
    for _ in range(60):
        raw = bytearray(whole[: chance.integers(1, len(whole) + 1)])
        for place in chance.integers(len(raw), size=3):
            raw[place] = chance.integers(256)
        with contextlib.suppress(PictureError):
            assert decode(bytes(raw), "x").pixels.dtype == np.uint8


def test_what_is_no_picture_says_how_it_begins(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"<html>no</html>")
    with pytest.raises(
        PictureError, match=r"a\.jpg: this is no picture that can be read \(it begins with 3c 68 74"
    ) as caught:
        decode(tmp_path / "a.jpg")
    assert caught.value.kind == UNREADABLE
    with pytest.raises(DataError, match=r"b\.jpg: cannot be read \(No such file"):
        decode(tmp_path / "b.jpg")
    with pytest.raises(DataError, match=r"c\.jpg: the file is empty"):
        decode(b"", "c.jpg")


def test_a_path_and_its_bytes_are_the_same_picture(tmp_path):
    (tmp_path / "a.png").write_bytes(png(5))
    assert (decode(tmp_path / "a.png").pixels == noise(5)).all()
    assert (decode(str(tmp_path / "a.png")).pixels == decode(png(5)).pixels).all()
    assert decode(png(5)).mended == ()


def test_broken_exif_does_not_lose_the_picture():
    raw = packed(Image.fromarray(noise(6)), "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff")
    assert decode(raw).pixels.shape == (12, 10, 3)
