"""Pictures from idx files."""

from __future__ import annotations

import gzip
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from statewise.automata import image_maps, pixel_prototypes
from statewise.data import Images, find_data_set, image_sets, read_idx, read_images
from statewise.errors import ArgumentError, DataError
from statewise.models import ClassifierConfig

SHAPE = (6, 3, 4)


def idx(array: np.ndarray) -> bytes:
    head = bytes([0, 0, 8, array.ndim]) + b"".join(size.to_bytes(4, "big") for size in array.shape)
    return head + array.astype(np.uint8).tobytes()


def pixels(count: int = SHAPE[0]) -> np.ndarray:
    return np.random.default_rng(count).integers(256, size=(count, *SHAPE[1:]))


def write(folder: Path, *, packed: bool = True, count: int = SHAPE[0]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for part in ("train", "t10k"):
        for kind, array in (("images-idx3", pixels(count)), ("labels-idx1", np.arange(count) % 10)):
            content, name = idx(array), f"{part}-{kind}-ubyte"
            (folder / (name + (".gz" if packed else ""))).write_bytes(gzip.compress(content) if packed else content)
    return folder


class TestReading:
    @pytest.mark.parametrize("packed", [True, False])
    @pytest.mark.parametrize("below", ["", "raw", "MNIST/raw"])
    def test_pictures_come_row_by_row_with_their_labels(self, tmp_path: Path, packed: bool, below: str) -> None:
        write(tmp_path / below, packed=packed)
        images = read_images(tmp_path, "test")
        assert (images.height, images.width, images.steps) == (3, 4, 12)
        assert (images.values == pixels().reshape(6, 12)).all()
        assert (images.pictures() == pixels()).all()
        assert images.labels.tolist() == [0, 1, 2, 3, 4, 5]

    def test_names_with_a_dot_are_found_as_they_are_read(self, tmp_path: Path) -> None:
        for path in write(tmp_path / "mnist", packed=False).iterdir():
            path.rename(path.with_name(path.name.replace("-idx", ".idx")))
        assert len(read_images(tmp_path / "mnist", "test")) == SHAPE[0]
        assert len(image_sets("mnist", data=tmp_path, valid=1).tests["test"]) == SHAPE[0]

    def test_of_two_kinds_of_pictures_none_is_taken(self, tmp_path: Path) -> None:
        write(tmp_path / "FashionMNIST" / "raw", count=7)
        assert len(read_images(tmp_path, "train")) == 7
        write(tmp_path / "MNIST" / "raw", count=8)
        with pytest.raises(DataError, match=r"MNIST/raw and .*FashionMNIST/raw, wanted pictures of one kind"):
            read_images(tmp_path, "train")
        assert len(read_images(tmp_path / "FashionMNIST", "train")) == 7
        for name, count in (("mnist", 8), ("fashion-mnist", 7)):
            assert len(image_sets(name, data=tmp_path, valid=0).train) == count

    def test_pictures_and_labels_are_taken_from_one_folder(self, tmp_path: Path) -> None:
        (write(tmp_path, count=5) / "train-labels-idx1-ubyte.gz").unlink()
        write(tmp_path / "raw", count=6)
        assert len(read_images(tmp_path, "train")) == 6

    def test_a_missing_file_and_an_unknown_part_are_told(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="train-images-idx3-ubyte"):
            read_images(tmp_path, "train")
        with pytest.raises(ArgumentError, match="'train' or 'test'"):
            read_images(tmp_path, "valid")
        with pytest.raises(DataError, match="no such file"):
            read_idx(tmp_path / "none")

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"", "nothing at byte 0"),
            (b"\0\0\x0d\x01\0\0\0\0", "00 00 0d 01 at byte 0"),
            (b"\x1f\x8b\x08\x00", "let its name end in .gz"),
            (b"\0\0\x08\x03\0\0\0\x02\0", "an end at byte 9, wanted 3 dimensions up to byte 16"),
            (idx(np.zeros((2, 2)))[:-1], r"an end at byte 15, wanted values of shape \(2, 2\) up to byte 16"),
            (idx(np.zeros(2)) + b"\0", "an end at byte 11"),
        ],
    )
    def test_a_malformed_file_is_refused_with_the_byte(self, tmp_path: Path, content: bytes, said: str) -> None:
        (tmp_path / "broken-idx").write_bytes(content)
        with pytest.raises(DataError, match=said) as caught:
            read_idx(tmp_path / "broken-idx")
        assert "broken-idx" in str(caught.value)

    def test_a_damaged_archive_is_refused(self, tmp_path: Path) -> None:
        whole = gzip.compress(idx(pixels()))
        for name, content in (("cut.gz", whole[:-12]), ("other.gz", b"no archive")):
            (tmp_path / name).write_bytes(content)
            with pytest.raises(DataError, match=name):
                read_idx(tmp_path / name)

    def test_pictures_and_labels_that_do_not_go_together_are_refused(self, tmp_path: Path) -> None:
        write(tmp_path, packed=False)
        labels = tmp_path / "train-labels-idx1-ubyte"
        labels.write_bytes(idx(np.zeros(5)))
        with pytest.raises(DataError, match="5 labels, wanted 6"):
            read_images(tmp_path, "train")
        labels.write_bytes(idx(np.array([0, 1, 10, 3, 4, 5])))
        with pytest.raises(DataError, match="the label 10 at byte 10"):
            read_images(tmp_path, "train")
        labels.write_bytes(idx(np.zeros((6, 1))))
        with pytest.raises(DataError, match="2 dimensions"):
            read_images(tmp_path, "train")


class TestSets:
    def test_the_last_pictures_are_kept_to_choose_by(self, tmp_path: Path) -> None:
        write(tmp_path / "mnist", count=8)
        sets = image_sets("mnist", data=tmp_path, valid=3)
        assert isinstance(sets.valid, Images)
        assert (len(sets.train), len(sets.valid), len(sets.tests["test"])) == (5, 3, 8)
        assert sets.valid.labels.tolist() == [5, 6, 7]
        assert image_sets("mnist", data=tmp_path, valid=0).valid is None

    def test_all_parts_are_permuted_alike(self, tmp_path: Path) -> None:
        sets = image_sets("fashion-mnist", data=write(tmp_path), valid=1, permute=5)
        assert sets.valid is not None
        assert sets.train.permutation is not None
        for part in (sets.valid, sets.tests["test"]):
            assert part.permutation is not None
            assert (part.permutation == sets.train.permutation).all()
        assert sets.train.classes[9] == "ankle boot"

    def test_others_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ArgumentError, match="'mnist' or 'fashion-mnist'"):
            image_sets("cifar")
        with pytest.raises(ArgumentError, match=r"image_sets\.valid"):
            image_sets("mnist", data=write(tmp_path), valid=6)
        with pytest.raises(DataError, match="LeCun"):
            find_data_set("mnist", data=tmp_path / "none")


class TestRows:
    def images(self) -> Images:
        return Images(values=pixels().reshape(6, 12), labels=np.arange(6) % 2, classes=("a", "b"), height=3, width=4)

    def test_a_step_is_a_row_of_grey_values(self) -> None:
        rows = self.images().by_rows()
        assert (rows.steps, rows.features, rows.pixels) == (3, 4, 12)
        values, lengths, labels = rows.padded([4, 1])
        assert values.shape == (2, 3, 4)
        assert lengths is None
        assert labels.tolist() == [0, 1]
        np.testing.assert_array_equal((values.numpy() * 255).round(), pixels()[[4, 1]])
        assert rows.padded([])[0].shape == (0, 3, 4)
        assert (rows.pictures() == pixels()).all()
        assert "a row a step" in repr(rows)

    def test_pixels_stay_what_they_were(self) -> None:
        plain = self.images()
        assert (plain.by, plain.steps, plain.features) == ("pixels", 12, 1)
        assert plain.padded([0])[0].shape == (1, 12, 1)

    def test_parts_and_copies_are_read_by_rows_too(self) -> None:
        rows = self.images().by_rows()
        for other in (rows.select([0, 2]), *rows.split(0.5, seed=0), pickle.loads(pickle.dumps(rows))):
            assert (other.by, other.steps) == ("rows", 3)
            assert not other.values.flags.writeable

    def test_permuted_pixels_make_no_rows(self) -> None:
        with pytest.raises(ArgumentError, match=r"Images\.by: got rows of pictures whose pixels are permuted"):
            self.images().permuted(seed=0).by_rows()
        with pytest.raises(ArgumentError, match="permuted"):
            self.images().by_rows().permuted(seed=0)
        with pytest.raises(ArgumentError, match=r'Images\.by: got columns, wanted "pixels" or "rows"'):
            replace(self.images(), by="columns")

    def test_all_parts_of_a_set_are_read_by_rows(self, tmp_path: Path) -> None:
        sets = image_sets("mnist", data=write(tmp_path), valid=2, by="rows")
        assert sets.valid is not None
        assert [part.by for part in (sets.train, sets.valid, sets.tests["test"])] == ["rows"] * 3
        with pytest.raises(ArgumentError, match="permuted"):
            image_sets("mnist", data=write(tmp_path), valid=2, by="rows", permute=0)

    def test_prototypes_of_pixels_are_refused(self) -> None:
        rows = self.images().by_rows()
        model = ClassifierConfig(hidden=4, centroids=(3,), readout="h").build(features=4, classes=2)
        with pytest.raises(ArgumentError, match="pictures read by rows"):
            pixel_prototypes(model, rows)
        with pytest.raises(ArgumentError, match="pictures read by rows"):
            image_maps(model, rows, [0])


@pytest.mark.data
class TestRealData:
    @pytest.mark.parametrize(("name", "mean"), [("mnist", 0.1307), ("fashion-mnist", 0.2860)])
    def test_counts_and_means_are_the_published_ones(self, name: str, mean: float) -> None:
        try:
            sets = image_sets(name, valid=0)
        except DataError:
            pytest.skip(f"{name} is not here")
        assert sets.train.values.shape == (60000, 784)
        assert sets.train.values.mean() / 255 == pytest.approx(mean, abs=1e-4)
        wanted = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009] if name == "mnist" else [1000] * 10
        assert sets.tests["test"].counts.tolist() == wanted
