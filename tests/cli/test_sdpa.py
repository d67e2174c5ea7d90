"""`attnscope sdpa`: arrays that are typed, pasted, or come from files and examples, and what is none."""

import csv
import json
import shlex
import zipfile
from pathlib import Path

import numpy as np
import pytest
import resealed
import torch

import attnscope as at
from attnscope import incoming
from attnscope.errors import InputError
from attnscope.verbs.sdpa.given import typed

TENSORS = ("sdpa", "--q", "1,0,1", "--k", "1,0,1; 0,1,0; 1,1,0", "--v", "1,2; 3,4; 5,6")
WEIGHTS = [[0.53289684, 0.16794345, 0.29915971]]
OUTPUT = [[2.53252575, 3.53252575]]


def document(result) -> dict:
    assert result.exit_code == 0, result.stderr
    asked = ("asked_by", "asked_of", "digests")  # which say how it was typed
    return {key: value for key, value in json.loads(result.stdout).items() if key not in asked}


def test_typed_arrays_are_worked_out_with_every_stage_and_its_shape(attnscope) -> None:
    result = attnscope(*TENSORS, "--decimals", "8")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    for heading in ("Q   1 x d_k=3", "K   3 x d_k=3 · rows = keys, columns = d_k", "scores = Q Kᵀ   1 x 3"):
        assert any(line.startswith(heading) for line in lines), heading
    assert "1.15470054  0.00000000  0.57735027" in result.stdout
    assert "0.53289684  0.16794345  0.29915971" in result.stdout
    assert "2.53252575  3.53252575" in result.stdout
    assert "q0, k0: 1·1 + 0·0 + 1·1 = 2" in result.stdout
    assert "✓ certified" in result.stdout
    assert "scaled_dot_product_attention" in result.stdout


def test_json_is_one_document_with_the_arrays_in_full(attnscope) -> None:
    told = document(attnscope(*TENSORS, "--json"))
    assert told["schema"] == "attnscope.worked/2"
    assert told["verdict"] == "certified"
    assert np.array(told["weights"]) == pytest.approx(np.array(WEIGHTS), abs=5e-9)
    assert np.array(told["output"]) == pytest.approx(np.array(OUTPUT), abs=5e-9)
    assert [step["key"] for step in told["steps"]] == ["q", "k", "v", "scores", "scaled", "weights", "output"]
    assert "K is square" in attnscope(*TENSORS).stderr
    assert attnscope(*TENSORS, "-q").stderr == ""
    plain = document(attnscope(*TENSORS, "--no-scale", "--json"))
    assert plain == document(attnscope(*TENSORS, "--scoring", "dot", "--json"))
    assert plain["weights"] != told["weights"]
    assert "scaled" not in plain


def test_numbers_go_into_every_kind_of_file(attnscope, tmp_path: Path) -> None:
    targets = [tmp_path / f"worked.{suffix}" for suffix in ("json", "csv", "npz", "png")]
    assert attnscope(*TENSORS, *(part for target in targets for part in ("-o", str(target)))).exit_code == 0
    told, archive = json.loads(targets[0].read_text("utf-8")), np.load(targets[2])
    lines = [line for line in targets[1].read_text("utf-8").splitlines() if not line.startswith("#")]
    written = [float(row["value"]) for row in csv.DictReader(lines) if row["step"] == "weights"]
    assert [written] == told["weights"] == archive["weights"].tolist()
    assert targets[3].stat().st_size > 5000


def test_without_values_there_are_weights_alone_also_in_files_and_read_again(attnscope, tmp_path) -> None:
    told = document(attnscope(*TENSORS[:5], "--wrong", "no-scale", "--json"))
    assert " ".join(step["key"] for step in told["steps"]) == "q k scores scaled weights wrong_weights"
    assert np.array(told["weights"]) == pytest.approx(np.array(WEIGHTS), abs=5e-9)
    np.savez(tmp_path / "a.npz", Q=[1, 0, 1], K=[[1, 0, 1], [0, 1, 0], [1, 1, 0]])
    targets = [str(tmp_path / name) for name in ("x.png", "x.html", "x.npz")]
    written = attnscope("sdpa", str(tmp_path / "a.npz"), *(part for each in targets for part in ("-o", each)))
    assert "output" not in written.stdout
    assert written.stdout.partition("\n✓")[0] in attnscope("show", targets[2]).stdout.replace(" (stored)", "")


def test_negative_numbers_can_be_typed(attnscope) -> None:
    arguments = ("sdpa", "--q", "-1,0", "--k", "1 0; -10 1", "--v", "-10; 30", "--no-scale", "--json")
    assert document(attnscope(*arguments))["output"][0][0] == pytest.approx(30 - 40 / (1 + np.exp(11)))


def test_names_are_shown_where_they_belong(attnscope) -> None:
    names = ("--queries", "fruit", "--keys", "apple,banana,chair", "--dims", "a,b,c")
    names += ("--value-dims", "price,use")
    steps = {step["key"]: step for step in document(attnscope(*TENSORS, *names, "--json"))["steps"]}
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
    typed_in = document(attnscope(*TENSORS, "--json"))
    assert document(attnscope("sdpa", "--q", "1,0,1", *files, "--json")) == typed_in


def test_a_stored_answer_is_asked_again_of_the_files_it_names(attnscope, refused, tmp_path: Path) -> None:
    k = Path("k.csv")
    k.write_text("1,0,1\n0,1,0\n")
    asked = "sdpa --q 1,0,1 --k k.csv --keys 'b c,d' --causal --wrong mask-with-zero"
    assert attnscope(*shlex.split(asked), "-o", "a.json", "-o", "a.npz").exit_code == 0
    assert f"made by: attnscope {asked}" in " ".join(attnscope("show", "a.json").stdout.split())
    for name in ("a.json", "a.npz"):
        assert f"{name} is the same to the last bit" in attnscope("check", name).stdout
    told = json.loads(Path("a.json").read_text("utf-8"))
    told["steps"][3]["values"][0][0] += 1e-4
    for files, code in ((told["asked_of"], 5), ({}, 2)):
        Path("forged.json").write_text(json.dumps(resealed.document(told | {"asked_of": files})))
        assert attnscope("check", "forged.json").exit_code == code
    refused("a.json needs no model: leave --model and --device out", "check", "a.json", "-m", "demo")
    k.write_text("1,0,1\n0,1,1\n")
    refused("k.csv is not the file that was read", "check", "a.json")
    k.unlink()
    refused("k.csv is neither beside a.json nor here", "check", "a.json")
    for asked in ("sdpa -o b.json", "sdpa --example theatre -l 1 -o b.json"):
        assert attnscope(*asked.split()).exit_code == 0
        assert "the same to the last bit" in attnscope("check", "b.json").stdout
    at.sdpa([[1, 0]], [[1, 0], [0, 1]]).save("called.json")
    assert attnscope("sdpa", "-", "-o", "piped.json", stdin=json.dumps(PROJECTED)).exit_code == 0
    for name in ("called.json", "piped.json"):
        assert "made by" not in attnscope("show", name).stdout
        refused("holds no weights of heads", "check", name)


def test_additive_scoring_takes_its_weights(attnscope) -> None:
    weights = ("--additive-wq", "1,0; 0,1", "--additive-wk", "2,0; 0,2; 1,1", "--additive-v", "1,-1")
    arrays = ("--q", "1,2", "--k", "1,0,0; 0,1,1", "--v", "5; 7")
    told = document(attnscope("sdpa", "--scoring", "additive", *arrays, *weights, "--json"))
    expected = [np.tanh(3) - np.tanh(2), np.tanh(2) - np.tanh(5)]
    assert told["scores"] == [pytest.approx(expected)]
    assert told["certificates"][0]["against"].startswith("a loop")


def test_words_are_looked_up_in_a_dictionary(attnscope) -> None:
    wanted = ("--lookup", "banana", "--lookup", "fruit")
    told = document(attnscope("sdpa", "--table", "apple=9, banana=6.5", *wanted, "--json"))
    assert told["found"] == [[6.5], [None]]
    assert told["case"] == "no answer"
    assert document(attnscope("sdpa", "--example", "dictionary", "--json"))["case"] == "no answer"
    assert attnscope("sdpa", "--example", "dictionary", "--lookup", "chair").stdout.count("none") == 0


def test_with_nothing_given_it_is_the_smallest_example_and_says_so(attnscope) -> None:
    said = attnscope("sdpa").stdout
    assert said == attnscope("sdpa", "--example", "fruit").stdout
    assert said.startswith("Example fruit: ")


BAD_JSON = {
    "{": "is no JSON",
    "[" * 100_000: "is no JSON",
    "[1, 2]": "holds no object with arrays by name: q, k, v",
    '{"QK": [[1]]}': "unknown in arrays.json: QK; known are q, k, v",
    '{"Q": [[1]], "K": [[1]], "k": [[1]]}': "arrays.json has K and k: they are the same, give one",
    '{"Q": [[1]], "K": [[1], [2, 3]]}': "K in arrays.json is ragged",
    '{"q": [[1, 2], [3]]}': "q in arrays.json is ragged",
    '{"q": []}': "q in arrays.json is empty",
    '{"q": [[]]}': "q in arrays.json is empty",
    '{"q": [["1"]]}': "'1' is no finite number",
    '{"q": [[true]]}': "'True' is no finite number",
    '{"q": [[NaN]]}': "'nan' is no finite number",
    '{"q": [[1' + "0" * 400 + "]]}": "is no finite number",
    '{"q": 3}': "is no list of rows",
    '{"q": [[[1]]]}': "q in arrays.json, row 0, column 0 is a list",
    '{"q": [[1]], "key_names": "ab"}': "key_names in arrays.json is no list of names",
    '{"q": [[1]], "k": [[1]], "v": [[1]], "bq": [[1]]}': "bq without x",
}


def test_bad_json_is_one_line(refused) -> None:
    for content, says in BAD_JSON.items():
        Path("arrays.json").write_text(content)
        refused(says, "sdpa", "arrays.json")


def test_bad_archives_are_one_line(refused) -> None:
    for name, array, says in (
        ("objects", np.array([object()], dtype=object), "cannot read 'objects.npz'"),
        ("cube", np.zeros((2, 3, 4)), "q in cube.npz is 2 x 3 x 4: two axes are needed"),
        ("number", np.array(3.0), "q in number.npz is a single number"),
        ("words", np.array(["x"]), "q in words.npz holds no numbers"),
        ("complex", np.array([[1j]]), "q in complex.npz holds no numbers"),
        ("nothing", np.zeros((0, 3)), "q in nothing.npz is empty"),
    ):
        np.savez(f"{name}.npz", q=array)
        refused(says, "sdpa", f"{name}.npz")
    Path("text.npz").write_text("hello")
    refused("it is no archive of arrays of NumPy", "sdpa", "text.npz")
    Path("folder.json").mkdir()
    refused("cannot read 'folder.json': it is a folder", "sdpa", "folder.json")
    Path("latin.csv").write_bytes(b"\xff\xfe1,2")
    refused("not valid UTF-8", "sdpa", "--q", "latin.csv", "--k", "1", "--v", "1")
    Path("a.json").write_text('{"q": [[1]], "k": [[1]], "v": [[1]]}')
    refused("q is given twice", "sdpa", "a.json", "--q", "2")


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
def test_numpys_files_that_are_damaged_are_one_line(refused, tmp_path: Path, content: bytes) -> None:
    damaged, packed = tmp_path / "q.npy", tmp_path / "q.npz"
    damaged.write_bytes(content)
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("q.npy", content)
    for arguments in (("--q", str(damaged), "--k", "1", "--v", "1"), (str(packed),)):
        refused("cannot read", "sdpa", *arguments)


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


def test_names_with_control_characters_and_markup_stay_text(attnscope) -> None:
    result = attnscope(*TENSORS, "--keys", "\x1b[31mred,[b]x[/b],c")
    assert "\x1b" not in result.stdout
    assert "\\x1b[31mred" in result.stdout
    assert "[b]x[/b]" in result.stdout


def test_a_failed_proof_ends_with_exit_code_5_after_everything_was_written(
    attnscope, tmp_path, monkeypatch
) -> None:
    from attnscope.arithmetic import logits_over

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


def test_a_head_that_heads_wrote_is_worked_out(attnscope, refused, tmp_path: Path) -> None:
    path = tmp_path / "head.npz"
    assert (
        attnscope("heads", "the bank", "-m", "demo", "-l", "0", "--head", "3", "-o", str(path)).exit_code == 0
    )
    told = document(attnscope("sdpa", str(path), "--json"))
    assert told["title"].endswith("L0 H3 of the bundled demo model")
    assert told["weights"] == [pytest.approx(row) for row in np.load(path)["weights"].tolist()]
    assert [one["verdict"] for one in told["certificates"]] == ["certified", "recomputed"]
    refused("as its model did it", "sdpa", str(path), "--causal")
    refused("leave the others out", "sdpa", str(path), "--q", "1")
    worked = tmp_path / "worked.json"
    assert attnscope(*TENSORS, "-o", str(worked)).exit_code == 0
    refused("is a Worked and not one head", "sdpa", str(worked))


def test_the_theatre_plays_on_other_models_where_their_matrices_are_found(attnscope) -> None:
    place = ("-l", "1", "--head", "1", "--json")
    on = ("-m", "demo-translate", "--kind", "encoder")
    told = document(attnscope("sdpa", "--example", "theatre", *on, *place))
    assert told["title"].endswith("L1 H1 of the bundled demo-translate model")
    assert [one["verdict"] for one in told["certificates"]] == ["certified", "certified"]
    assert all(check["passed"] for check in told["checks"])


PASTED = [[1.0, 0.0, -2.5], [0.0, 1e8, 1.0]]


def as_pasted(text: str) -> list[list[float]]:
    return typed(text, "--q").values.tolist()


@pytest.mark.parametrize(
    "text",
    [
        "1,0,-2.5; 0,1e8,1",
        "[[1, 0, -2.5], [0, 1e8, 1]]",
        "[[1, 0, -2.5],\n [0, 1e8, 1],]",
        "[1 0 -2.5; 0 1e8 1]",
        "((1, 0, -2.5), (0, 1e8, 1))",
        "np.array([[1, 0, -2.5], [0, 1e8, 1]], dtype=np.float32)",
        "torch.tensor([[1., 0., -2.5], [0., 1e8, 1.]], requires_grad=True)",
        "tensor([[1., 0., -2.5], [0., 1e8, 1.]], device='cuda:0', grad_fn=<MmBackward0>)",
        "Q = [[1, 0, -2.5], [0, 1e8, 1]]",
        "[[[1, 0, -2.5], [0, 1e8, 1]]]",
    ],
)
def test_an_array_is_read_as_it_is_pasted(text: str) -> None:
    assert as_pasted(text) == PASTED


@pytest.mark.parametrize("shape", [(3, 5), (1, 4), (4, 1), (30, 12)])
@pytest.mark.parametrize("show", [str, repr])
def test_what_numpy_and_torch_print_is_read_again(shape: tuple[int, int], show) -> None:
    values = np.random.default_rng(0).normal(size=shape).round(3)
    assert as_pasted(show(values)) == values.tolist()
    assert as_pasted(show(torch.tensor(values))) == values.tolist()
    whole = (values * 1000).astype(int)
    assert as_pasted(show(whole)) == whole.tolist()


def test_a_flat_list_is_one_row() -> None:
    assert as_pasted("[1, 0, 1]") == as_pasted("tensor([1., 0., 1.])") == [[1, 0, 1]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[1, 0], [1]]", "--q is ragged: row 0 has 2 cells, row 1 has 1"),
        ("[[1, 0], [1, x]]", "--q, row 1, column 1: 'x' is no finite number"),
        ("[[1, 0], [1, 0]", "--q: a bracket is not closed"),
        ("[[1, 0], [1, 0]]]", "--q: what follows the array"),
        ("[[1, 0], [1, 0]] + 3", "--q: what follows the array"),
        ("[[1, 0], 3]", "--q has rows and single numbers side by side"),
        ("[[[1, 0]], [[0, 1]]]", "--q has 2 blocks of rows: two axes are needed"),
        (str(np.arange(4000).reshape(40, 100)), "--q is cut short by '...'"),
        ("[]", "--q is empty"),
        ("[[1, 0], []]", "--q is ragged: row 0 has 2 cells, row 1 has 0"),
        ("[[], []]", "--q is empty"),
        ("[" * 5000, "--q: a bracket is not closed"),
        ("[[1, , 2]]", "--q, row 0, column 1: '' is no finite number"),
    ],
)
def test_what_is_no_array_is_said_in_one_line(text: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        as_pasted(text)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)
