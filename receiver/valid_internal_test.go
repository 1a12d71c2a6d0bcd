package receiver

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzValidJSON compares with encoding/json, which decides.
func FuzzValidJSON(f *testing.F) {
	for _, text := range []string{
		"", " ", "{}", "[]", `""`, "0", "-0", "-", "01", "1.", "1.5e+7", "1e", "1E-", ".5", "true", "tru", "nul", "falsee",
		`{"a":1}`, `{"a":1,}`, `{"a" 1}`, `{a:1}`, `{,}`, "[1,2,]", "[,]", "[1 2]", `[1]]`, `{"a":[{"b":null}]} `,
		`"\u12aF"`, `"\u12g0"`, `"\u12"`, `"\x"`, `"\`, "\"\n\"", "\"\x1f\"", "\"\x7f\"", `"12345678`, `"1234567\"8"`,
		`"\\"`, `"\ud800"`, "\"\xff\"", "\"ü😀 and quite a bit more of it\"", "\ufeff{}", "1 2", "{}x", "[", "{\"a\":", "\t\r\n 1",
		strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001),
		strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000), strings.Repeat(`{"a":`, 10_001) + "1" + strings.Repeat("}", 10_001),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(requireSameValidity)
}

func requireSameValidity(t *testing.T, body []byte) {
	body = slices.Clip(body) // so that nobody can read behind it
	valid := json.Valid(body)
	if got := validJSON(body); got != valid {
		require.Equal(t, valid, got, "%q", body)
	}
	var checked, trusted []string
	collect := func(all *[]string) func(name, value []byte) error {
		return func(name, value []byte) error {
			*all = append(*all, string(name), string(value))
			return nil
		}
	}
	object := valid && bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{"))
	if err := validObject(body, collect(&checked)); object != (err == nil) {
		require.Equal(t, object, err == nil, "as an object: %q", body)
	}
	if object {
		require.NoError(t, members(body, collect(&trusted)))
		if !slices.Equal(checked, trusted) {
			require.Equal(t, checked, trusted, "%q", body)
		}
	}
}

// oneByteChanged yields text with a byte less, more or replaced, and all that it begins with.
func oneByteChanged(text, alphabet string) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i := range len(text) {
			all := [][]byte{[]byte(text[:i]), []byte(text[:i] + text[i+1:])}
			for _, c := range []byte(alphabet) {
				all = append(all, slices.Concat([]byte(text[:i]), []byte{c}, []byte(text[i:])), slices.Concat([]byte(text[:i]), []byte{c}, []byte(text[i+1:])))
			}
			for _, changed := range all {
				if !yield(changed) {
					return
				}
			}
		}
	}
}

func TestValidJSONWithOneByteChanged(t *testing.T) {
	var every [256]byte
	for c := range every {
		every[c] = byte(c)
	}
	for _, text := range []string{
		` { "a" : [ 1 , true , false , null , "" ] , "b" : { } , "c" : [ ] } `,
		`{"a":{"b":[{"c":"}"},["]\\"]],"":2},"\"d":-1}`,
		"\r\n{\t\"a\"\r:\n1\t,\n\"b\"\t:\r2\n}\t",
		"[-0.5e+7,10E-2,0,1e5]",
		`"\u12aF\"\\\/\b\f\n\r\tü"`,
		`["a text that is longer than two steps of sixteen bytes"," 1234567"]`,
	} {
		require.True(t, json.Valid([]byte(text)), text)
		for changed := range oneByteChanged(text, string(every[:])) {
			requireSameValidity(t, changed)
		}
	}
}

// encoding/json makes U+FFFD of what is half of a surrogate pair, so a text that has none
// itself shows which ones are.
func TestTextWithOneByteChanged(t *testing.T) {
	for _, whole := range []string{`"a\ud83d\ude00b"`, `"\ud83d\ude00\uD83D\uDE00"`, `"\\ud83d\u0041\n\"ud83d"`, `"\u0041\u004a\u00e9"`} {
		for raw := range oneByteChanged(whole, `\u0148abcdefCDEF9"x`) {
			var want string
			if json.Unmarshal(raw, &want) != nil {
				continue
			}
			got, err := text(raw)
			if half := strings.ContainsRune(want, '\uFFFD'); half != (err != nil) || !half && got != want {
				require.Equal(t, half, err != nil, "%s: %v", raw, err)
				require.Equal(t, want, got)
			}
		}
	}
}

func TestMemberAt(t *testing.T) {
	body := `{"a":{"b":"1","c":2,"c":3,"d":[],"\u0065":{"f":4}},"g":null,"":5}`
	for path, want := range map[string]string{
		"": body, "a.b": `"1"`, "a.d": "[]", "a.e.f": "4", "g": "null",
		"a.c": "", "a.x": "", "a.b.x": "", "a.d.x": "", "g.x": "", "a.e.f.x": "",
	} {
		require.Equal(t, want, string(memberAt([]byte(body), path)), path)
	}
}
