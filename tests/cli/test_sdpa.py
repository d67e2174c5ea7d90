"""`attnscope sdpa` as a shell runs it: typed arrays, files, examples, and what it says to bad input."""

import csv
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from attnscope import incoming

TENSORS = ("sdpa", "--q", "1,0,1", "--k", "1,0,1; 0,1,0; 1,1,0", "--v", "1,2; 3,4; 5,6")
WEIGHTS = [[0.53289684, 0.16794345, 0.29915971]]
OUTPUT = [[2.53252575, 3.53252575]]


def document(result) -> dict:
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_typed_arrays_are_worked_out_with_every_stage_and_its_shape(attnscope) -> None:
    result = attnscope(*TENSORS, "--decimals", "8")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    for heading in (
        "Q   1 x d_k=3",
        "K   3 x d_k=3 · rows = keys, columns = d_k",
        "V   3 x d_v=2",
        "scores = Q Kᵀ   1 x 3",
    ):
        assert any(line.startswith(heading) for line in lines), heading
    assert "1.15470054  0.00000000  0.57735027" in result.stdout
    assert "0.53289684  0.16794345  0.29915971" in result.stdout
    assert "2.53252575  3.53252575" in result.stdout
    assert "q0, k0: 1·1 + 0·0 + 1·1 = 2" in result.stdout
    assert "✓ certified" in result.stdout
    assert "scaled_dot_product_attention" in result.stdout


def test_a_square_k_is_warned_about_beside_the_result(attnscope) -> None:
    result = attnscope(*TENSORS)
    assert "K is square" in result.stderr
    assert "square" not in result.stdout
    assert attnscope(*TENSORS, "-q").stderr == ""


def test_json_is_one_document_with_the_arrays_in_full(attnscope) -> None:
    told = document(attnscope(*TENSORS, "--json"))
    assert told["schema"] == "attnscope.worked/2"
    assert told["verdict"] == "certified"
    assert np.array(told["weights"]) == pytest.approx(np.array(WEIGHTS), abs=5e-9)
    assert np.array(told["output"]) == pytest.approx(np.array(OUTPUT), abs=5e-9)
    assert [step["key"] for step in told["steps"]] == ["q", "k", "v", "scores", "scaled", "weights", "output"]
    assert told["steps"][1] == told["steps"][1] | {
        "key": "k",
        "symbol": "K",
        "given": True,
        "formula": "",
        "shape": [3, 3],
        "axes": ["key", "d_k"],
        "rows": ["k0", "k1", "k2"],
        "columns": ["0", "1", "2"],
    }


def test_numbers_go_into_every_kind_of_file(attnscope, tmp_path: Path) -> None:
    targets = [tmp_path / f"worked.{suffix}" for suffix in ("json", "csv", "npz")]
    assert attnscope(*TENSORS, *(part for target in targets for part in ("-o", str(target)))).exit_code == 0
    told = json.loads(targets[0].read_text("utf-8"))
    rows = list(
        csv.DictReader(
            io.StringIO(
                "".join(
                    line
                    for line in targets[1].read_text("utf-8").splitlines(True)
                    if not line.startswith("#")
                )
            )
        )
    )
    archive = np.load(targets[2])
    written = [float(row["value"]) for row in rows if row["step"] == "weights"]
    assert [written] == told["weights"] == archive["weights"].tolist()
    assert json.loads(str(archive["meta"]))["schema"] == "attnscope.worked/2"
    assert {row["step"] for row in rows} == {step["key"] for step in told["steps"]}


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_pictures_are_the_same_bytes_every_time(attnscope, tmp_path: Path, suffix: str) -> None:
    first, second = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
    attnscope(*TENSORS, "-o", str(first), "-o", str(second))
    assert first.read_bytes() == second.read_bytes()
    assert len(first.read_bytes()) > 5000


def test_no_scale_is_dot_scoring(attnscope) -> None:
    plain = document(attnscope(*TENSORS, "--no-scale", "--json"))
    assert plain == document(attnscope(*TENSORS, "--scoring", "dot", "--json"))
    assert plain["weights"] != document(attnscope(*TENSORS, "--json"))["weights"]
    assert "scaled" not in plain


def test_negative_numbers_can_be_typed(attnscope) -> None:
    arguments = ("sdpa", "--q", "-1,0", "--k", "1 0; -10 1", "--v", "-10; 30", "--no-scale", "--json")
    assert document(attnscope(*arguments))["output"][0][0] == pytest.approx(30 - 40 / (1 + np.exp(11)))


def test_names_are_shown_where_they_belong(attnscope) -> None:
    names = (
        "--queries",
        "fruit",
        "--keys",
        "apple,banana,chair",
        "--dims",
        "a,b,c",
        "--value-dims",
        "price,use",
    )
    told = document(attnscope(*TENSORS, *names, "--json"))
    steps = {step["key"]: step for step in told["steps"]}
    assert steps["weights"]["rows"] == ["fruit"]
    assert steps["weights"]["columns"] == steps["v"]["rows"] == ["apple", "banana", "chair"]
    assert steps["q"]["columns"] == steps["k"]["columns"] == ["a", "b", "c"]
    assert steps["output"]["columns"] == ["price", "use"]


def test_a_csv_brings_the_names_of_its_rows_and_columns(attnscope, tmp_path: Path) -> None:
    keys, values, query = (tmp_path / name for name in ("k.csv", "v.csv", "q.csv"))
    keys.write_text("# a comment\nname,sweet,hard\napple,0.9,0.1\nchair,0.1,0.9\nsofa,0.2,0.7\n")
    values.write_text("price;liking\n1;2\n3;4\n5;6\n")
    query.write_bytes("\ufeffsweet,hard\r\n0.8,0.1\r\n".encode())
    told = document(attnscope("sdpa", "--q", str(query), "--k", str(keys), "--v", str(values), "--json"))
    steps = {step["key"]: step for step in told["steps"]}
    assert steps["k"]["rows"] == ["apple", "chair", "sofa"]
    assert steps["k"]["columns"] == ["sweet", "hard"]
    assert steps["output"]["columns"] == ["price", "liking"]
    assert told["scores"] == [pytest.approx([0.73, 0.17, 0.23])]


PROJECTED = {
    "x": [[1, 0, 2], [0, 1, 1]],
    "wq": [[1, 0], [0, 1], [1, 1]],
    "wk": [[0.5, 0], [0, 0.5], [1, 0]],
    "wv": [[1], [2], [3]],
    "bq": [1, -1],
    "token_names": ["new", "movie"],
}


def test_x_with_its_matrices_comes_from_json_npz_or_standard_input(attnscope, tmp_path: Path) -> None:
    as_json, as_npz = tmp_path / "x.json", tmp_path / "x.npz"
    as_json.write_text(json.dumps(PROJECTED))
    np.savez(as_npz, **{key: np.array(value) for key, value in PROJECTED.items()})
    told = document(attnscope("sdpa", str(as_json), "--causal", "--json"))
    assert told["q"] == [[4, 1], [2, 1]]
    assert told["weights"][0] == [1, 0]
    assert told["masked"][0] == [pytest.approx(2.5 * 4 / 2**0.5), None]
    assert [step["rows"] for step in told["steps"] if step["key"] == "weights"] == [["new", "movie"]]
    assert document(attnscope("sdpa", str(as_npz), "--causal", "--json")) == told
    assert document(attnscope("sdpa", "-", "--causal", "--json", stdin=json.dumps(PROJECTED))) == told


def test_single_arrays_come_from_npy_and_json(attnscope, tmp_path: Path) -> None:
    np.save(tmp_path / "k.npy", np.array([[1, 0, 1], [0, 1, 0], [1, 1, 0]]))
    (tmp_path / "v.json").write_text("[[1, 2], [3, 4], [5, 6]]")
    files = ("--k", str(tmp_path / "k.npy"), "--v", str(tmp_path / "v.json"))
    assert attnscope("sdpa", "--q", "1,0,1", *files, "--json").stdout == attnscope(*TENSORS, "--json").stdout


def test_additive_scoring_takes_its_weights(attnscope) -> None:
    weights = ("--additive-wq", "1,0; 0,1", "--additive-wk", "2,0; 0,2; 1,1", "--additive-v", "1,-1")
    arrays = ("--q", "1,2", "--k", "1,0,0; 0,1,1", "--v", "5; 7")
    told = document(attnscope("sdpa", "--scoring", "additive", *arrays, *weights, "--json"))
    expected = [np.tanh(3) - np.tanh(2), np.tanh(2) - np.tanh(5)]
    assert told["scores"] == [pytest.approx(expected)]
    assert told["certificates"][0]["against"].startswith("a loop")


@pytest.mark.parametrize(
    "name", ["dictionary", "fruit", "tensors", "tensors-identity", "tensors-sharp", "why-scale"]
)
@pytest.mark.parametrize("width", [40, 80, 140])
def test_examples_fit_into_the_terminal(attnscope, name: str, width: int) -> None:
    result = attnscope("sdpa", "--example", name, width=width)
    assert result.exit_code == 0
    shown, _, command = result.stdout.partition("Next: ")
    assert max(map(len, shown.splitlines())) <= width
    assert max(map(len, command.splitlines()), default=0) <= 80, "a command is one line at whatever width"


def test_the_theatre_shows_whole_rows_of_weights_at_80_columns(attnscope) -> None:
    result = attnscope("sdpa", "--example", "theatre", "-v")
    assert result.exit_code == 0, result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 80
    weights = result.stdout.partition("weights = ")[2].partition("output = ")[0].splitlines()
    row = next(line for line in weights if line.split()[:1] == ["movie"])
    assert sum(map(float, row.split()[1:])) == pytest.approx(1, abs=0.05)
    assert len(row.split()) == 14
    assert result.stdout.count("✓ certified") == 2
    assert "watch → movie" in result.stdout
    assert "T x d → T x d_k → T x T → T x d_v → T x d = 13 x 96" in result.stdout


def test_the_theatre_can_show_another_head(attnscope) -> None:
    told = document(attnscope("sdpa", "--example", "theatre", "--head", "-2", "--json"))
    assert told["title"].endswith("L0 H10 of the bundled demo model")
    assert told["provenance"]["demo"] is True
    assert [one["verdict"] for one in told["certificates"]] == ["certified", "certified"]


def test_words_are_looked_up_in_a_dictionary(attnscope) -> None:
    told = document(
        attnscope(
            "sdpa", "--table", "apple=9, banana=6.5", "--lookup", "banana", "--lookup", "fruit", "--json"
        )
    )
    assert told["found"] == [[6.5], [None]]
    assert told["case"] == "no answer"
    assert document(attnscope("sdpa", "--example", "dictionary", "--json"))["case"] == "no answer"
    assert attnscope("sdpa", "--example", "dictionary", "--lookup", "chair").stdout.count("none") == 0


def test_with_nothing_given_it_is_the_smallest_example_and_says_so(attnscope) -> None:
    result = attnscope("sdpa")
    assert result.exit_code == 0
    assert result.stdout == attnscope("sdpa", "--example", "fruit").stdout
    assert result.stdout.startswith("Example fruit: ")


BAD = [
    (
        ("--q", "1,0", "--k", "1,0,1; 0,1,0; 1,1,0", "--v", "1;2;3"),
        "Q is 1 x d_k=2, K is 3 x d_k=3: d_k must agree",
    ),
    (("--q", "1,x", "--k", "1", "--v", "1"), "--q, row 0, column 1: 'x' is no finite number"),
    (("--q", "1,,2", "--k", "1", "--v", "1"), "--q, row 0, column 1: '' is no finite number"),
    (("--q", "1,0; 1", "--k", "1", "--v", "1"), "--q is ragged: row 0 has 2 cells, row 1 has 1"),
    (("--q", " ; ", "--k", "1", "--v", "1"), "--q is empty"),
    (("--q", "nan", "--k", "1", "--v", "1"), "'nan' is no finite number"),
    (("--q", "1e999", "--k", "1", "--v", "1"), "'1e999' is no finite number"),
    (("--q", "1_0", "--k", "1", "--v", "1"), "'1_0' is no finite number"),
    (("--q", "nowhere.csv", "--k", "1", "--v", "1"), "cannot read 'nowhere.csv': no such file"),
    (("nowhere.json",), "cannot read 'nowhere.json': no such file"),
    (("arrays.txt",), "name a .json or .npz file"),
    (("--example", "pear"), "no example 'pear': dictionary, fruit"),
    (("--example", "fruit", "--q", "1"), "give one of these: arrays, --table or --example"),
    (("--example", "fruit", "--table", "a=1"), "give one of these"),
    (("--example", "fruit", "--lookup", "a"), "--lookup goes with"),
    (("--example", "theatre", "--causal"), "as they are"),
    (("--example", "why-scale", "--no-scale"), "leave out"),
    (("--example", "theatre", "--head", "12"), "no head 12"),
    (("--example", "theatre", "--head", "all"), "one head"),
    (("--head", "3"), "go with --example theatre"),
    (("--model", "demo"), "--head and --kind go with --example theatre"),
    (("--scores", "1 2", "--no-scale"), "--scores are given"),
    (("--scores", "1 inf"), "--scores, row 0, column 1: 'inf' is no finite number"),
    (("--q", "-inf", "--k", "1", "--v", "1"), "'-inf' is no finite number"),
    (("--q", "1", "--k", "1", "--v", "1", "--d-k", "3"), "--d-k goes with --scores"),
    (("--example", "fruit", "--wrong", "pear"), "no mistake 'pear': no-transpose"),
    (("--example", "why-scale", "--wrong", "no-scale"), "not with a study"),
    (("--table", "a=1,b"), "'b' is no entry such as apple=9"),
    (("--table", "a=1,a=2"), "two values for 'a'"),
    (("--table", "a=x"), "--table, a: 'x' is no finite number"),
    (("--no-scale", "--scoring", "additive"), "--no-scale contradicts --scoring additive"),
    (("--scoring", "additive", "--q", "1", "--k", "1", "--v", "1"), "additive_wq = Aq (d_q x d_a)"),
    (("--q", "1", "--k", "1", "--v", "1", "--keys", "a,,b"), "--keys 'a,,b' has an empty name"),
    (("--example", "fruit", "-o", "x.txt"), "the name must end in"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_is_one_line_and_exit_code_2(attnscope, arguments: tuple[str, ...], message: str) -> None:
    result = attnscope("sdpa", *arguments)
    assert result.exit_code == 2
    errors = [line for line in result.stderr.splitlines() if line.startswith("attnscope: ")]
    assert len(errors) == 1
    assert message in errors[0]
    assert result.stdout == ""


BAD_JSON = [
    ("{", "is no JSON"),
    ("[" * 100_000, "is no JSON"),
    ("[1, 2]", "holds no object with arrays by name: q, k, v"),
    ('{"Q": [[1]]}', "unknown in arrays.json: Q; known are q, k, v"),
    ('{"q": [[1, 2], [3]]}', "q in arrays.json is ragged"),
    ('{"q": []}', "q in arrays.json is empty"),
    ('{"q": [[]]}', "q in arrays.json is empty"),
    ('{"q": [["1"]]}', "'1' is no finite number"),
    ('{"q": [[true]]}', "'True' is no finite number"),
    ('{"q": [[NaN]]}', "'nan' is no finite number"),
    ('{"q": [[1' + "0" * 400 + "]]}", "is no finite number"),
    ('{"q": 3}', "is no list of rows"),
    ('{"q": [[1]], "key_names": "ab"}', "key_names in arrays.json is no list of names"),
    ('{"q": [[1]], "k": [[1]], "v": [[1]], "bq": [[1]]}', "bq without x"),
]


@pytest.mark.parametrize(("content", "message"), BAD_JSON)
def test_bad_json_is_one_line(attnscope, tmp_path: Path, monkeypatch, content: str, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("arrays.json").write_text(content)
    result = attnscope("sdpa", "arrays.json")
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_bad_archives_are_one_line(attnscope, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, array, message in (
        ("objects", np.array([object()], dtype=object), "cannot read 'objects.npz'"),
        ("cube", np.zeros((2, 3, 4)), "q in cube.npz is 2 x 3 x 4: two axes are needed"),
        ("number", np.array(3.0), "q in number.npz is a single number"),
        ("words", np.array(["x"]), "q in words.npz holds no numbers"),
        ("complex", np.array([[1j]]), "q in complex.npz holds no numbers"),
        ("nothing", np.zeros((0, 3)), "q in nothing.npz is empty"),
    ):
        np.savez(f"{name}.npz", q=array)
        assert message in attnscope("sdpa", f"{name}.npz").stderr
    Path("text.npz").write_text("hello")
    assert "it is no archive of arrays of NumPy" in attnscope("sdpa", "text.npz").stderr


def lying(described: str, shape: str, end: str = " }") -> bytes:
    """A .npy file whose header says what is not so."""
    header = (
        f"{{'descr': '{described}', 'fortran_order': False, 'shape': {shape},{end}".ljust(117).encode()
        + b"\n"
    )
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 64


@pytest.mark.parametrize(
    "content",
    [
        lying("<f8", "(2, 2", end=""),  # a parenthesis that nothing closes
        lying("<f9", "(2, 2)"),
        lying("<f8", "(1000000, 1000000)"),
        lying("<f8", "(9223372036854775807,)"),
        lying("<f8", "(-1, 'x')"),
        lying("<U1000000", "(1000000,)"),
        b"\x93NUMPY\x07\x00",
    ],
)
def test_numpys_files_that_are_damaged_are_one_line(attnscope, tmp_path: Path, content: bytes) -> None:
    damaged, packed = tmp_path / "q.npy", tmp_path / "q.npz"
    damaged.write_bytes(content)
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("q.npy", content)
    for arguments in (("--q", str(damaged), "--k", "1", "--v", "1"), (str(packed),)):
        result = attnscope("sdpa", *arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "cannot read" in result.stderr
        assert len(result.stderr.splitlines()) == 1


def test_arrays_without_room_in_memory_are_refused_by_their_size(attnscope, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(incoming, "left", lambda: 10**6)
    np.savez_compressed("bomb.npz", q=np.zeros((3000, 3000)), k=np.zeros((2, 3)))
    np.save("wide.npy", np.ones((100, 101), np.int8))
    Path("wide.csv").write_text("1," * 20_000)
    Path("wide.json").write_text("[" + "[]," * 9000 + "[]]")
    with open("large.json", "wb") as file:
        file.truncate(65 * 2**20)
    for arguments, message in (
        (["bomb.npz"], "'bomb.npz' unpacked takes 72.0 MB ('q' alone 72.0 MB), and memory has 1.0 MB free"),
        (["--q", "wide.npy"], "--q in wide.npy as numbers takes 1.0 MB, and memory has 1.0 MB free"),
        (["--q", "wide.csv"], "--q in wide.csv as numbers takes 2.0 MB, and memory has 1.0 MB free"),
        (["--q", "wide.json"], "wide.json as JSON takes 1.5 MB, and memory has 1.0 MB free"),
        (["large.json"], "reading 'large.json' takes 0.1 GB, and memory has 1.0 MB free"),
    ):
        result = attnscope("sdpa", *arguments, *(["--k", "1", "--v", "1"] if "--q" in arguments else []))
        assert (result.exit_code, result.stderr) == (4, f"attnscope: {message}\n")


def test_files_that_are_unreadable_or_no_text_are_refused(attnscope, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder.json").mkdir()
    Path("latin.csv").write_bytes(b"\xff\xfe1,2")
    assert "cannot read 'folder.json': it is a folder" in attnscope("sdpa", "folder.json").stderr
    assert "not valid UTF-8" in attnscope("sdpa", "--q", "latin.csv").stderr


def test_an_array_given_twice_is_refused(attnscope, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"q": [[1]], "k": [[1]], "v": [[1]]}')
    assert "q is given twice" in attnscope("sdpa", str(tmp_path / "a.json"), "--q", "2").stderr


def test_names_with_control_characters_and_markup_stay_text(attnscope) -> None:
    result = attnscope(*TENSORS, "--keys", "\x1b[31mred,[b]x[/b],c")
    assert "\x1b" not in result.stdout
    assert "\\x1b[31mred" in result.stdout
    assert "[b]x[/b]" in result.stdout


def test_a_failed_proof_ends_with_exit_code_5_after_everything_was_written(
    attnscope, tmp_path, monkeypatch
) -> None:
    from attnscope.sdpa import logits_over

    monkeypatch.setattr(
        "attnscope.verify.together.logits_over",
        lambda scores, scale, *others, **to: logits_over(scores, scale * 1.01, *others, **to),
    )
    result = attnscope(*TENSORS, "-o", str(tmp_path / "a.json"))
    assert result.exit_code == 5
    assert "FAILED" in result.stdout
    assert json.loads((tmp_path / "a.json").read_text("utf-8"))["verdict"] == "failed"


def test_scores_are_typed_or_pasted_and_minus_infinity_masks(attnscope) -> None:
    told = document(attnscope("sdpa", "--scores", "[[2, 0, -inf], [1, 1, 1]]", "--json"))
    assert told["weights"][0] == pytest.approx([1 / (1 + np.exp(-2)), 1 / (1 + np.exp(2)), 0])
    assert told["verdict"] == "certified"
    scaled = document(attnscope("sdpa", "--scores", "2 0 1", "--d-k", "4", "--v", "1;2;3", "--json"))
    assert scaled["scaled"] == [[1, 0, 0.5]]
    assert "−∞" not in attnscope("sdpa", "--scores", "1 2; 2 3").stdout


def test_a_mistake_stands_beside_the_right_result_and_is_read_again(attnscope, tmp_path: Path) -> None:
    path = tmp_path / "wrong.json"
    result = attnscope(*TENSORS, "--wrong", "no-transpose", "-o", str(path), "--json")
    told = document(result)
    assert told["mistake"]["name"] == "no-transpose"
    assert told["wrong_scores"] == [[2, 1, 1]]
    assert told["weights"] == document(attnscope(*TENSORS, "--json"))["weights"]
    again = attnscope("show", str(path)).stdout
    assert "wrong on purpose: K not transposed: Q K in place of Q Kᵀ" in again
    assert "differs: weights up to 0.09652 off, at q0, k1 (0.2645 where 0.1679 is right)" in again


def test_a_head_that_heads_wrote_is_worked_out(attnscope, tmp_path: Path) -> None:
    path = tmp_path / "head.npz"
    assert (
        attnscope("heads", "the bank", "-m", "demo", "-l", "0", "--head", "3", "-o", str(path)).exit_code == 0
    )
    told = document(attnscope("sdpa", str(path), "--json"))
    assert told["title"].endswith("L0 H3 of the bundled demo model")
    assert told["weights"] == [pytest.approx(row) for row in np.load(path)["weights"].tolist()]
    assert [one["verdict"] for one in told["certificates"]] == ["certified", "recomputed"]
    for arguments, message in (
        (("--causal",), "as its model did it"),
        (("--q", "1"), "leave the others out"),
    ):
        refused = attnscope("sdpa", str(path), *arguments)
        assert refused.exit_code == 2
        assert message in refused.stderr
    worked = tmp_path / "worked.json"
    assert attnscope(*TENSORS, "-o", str(worked)).exit_code == 0
    assert "is a Worked and not one head" in attnscope("sdpa", str(worked)).stderr


def test_the_theatre_plays_on_other_models_where_their_matrices_are_found(attnscope) -> None:
    place = ("-l", "1", "--head", "1", "--json")
    refused = attnscope("sdpa", "--example", "theatre", "-m", "demo-causal", *place)
    assert refused.exit_code == 2
    assert "rotary positions are turned into its queries and keys after Wq and Wk" in refused.stderr
    on = ("-m", "demo-translate", "--kind", "encoder")
    told = document(attnscope("sdpa", "--example", "theatre", *on, *place))
    assert told["title"].endswith("L1 H1 of the bundled demo-translate model")
    assert [one["verdict"] for one in told["certificates"]] == ["certified", "certified"]
    assert all(check["passed"] for check in told["checks"])
