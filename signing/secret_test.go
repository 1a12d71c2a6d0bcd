package signing_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"encoding/xml"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"unicode/utf16"
	"unsafe"

	"github.com/stretchr/testify/assert" //nolint:depguard // what it prints is looked at, nothing is asserted with it
	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
)

// From the specification's and the reference implementation's own tests:
// standard-webhooks/standard-webhooks, svix/svix-webhooks worker.rs.
const (
	publishedHMAC    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	publishedPrivate = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
	publishedSeed    = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbc="
	publishedPublic  = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
)

func b64(n int) string {
	raw := make([]byte, n)
	for i := range raw {
		raw[i] = byte(7*i + 1)
	}
	return base64.StdEncoding.EncodeToString(raw)
}

func TestParseSecret(t *testing.T) {
	for _, text := range []string{
		publishedHMAC, publishedPrivate, publishedSeed, publishedPublic,
		"whsec_" + b64(24), "whsec_" + b64(32), "whsec_" + b64(64), b64(32),
		"24-bytes-of-any-text-24!", "größer-als-vierundzwanzig", "WHSEC_not-the-prefix-at-all",
		"awhile-without-quotation-marks", `"and-so-is-this-whatever-it-has"`,
		strings.Repeat("ab", 512),
	} {
		s, err := signing.ParseSecret(text)
		require.NoError(t, err, text)
		require.Equal(t, text, s.Reveal())
	}

	seed, other := decoded(strings.TrimPrefix(publishedSeed, "whsk_")), decoded(b64(32))
	spoilt := "whsk_" + base64.StdEncoding.EncodeToString(append(seed, other...))
	for what, text := range map[string]string{
		"empty":                    "",
		"prefix alone":             "whsec_",
		"short decoded":            "whsec_" + b64(23),
		"long decoded":             "whsec_" + b64(65),
		"short text":               "23-bytes-of-any-text-23",
		"long text":                strings.Repeat("ab", 512) + "c",
		"leading space":            " " + publishedHMAC,
		"trailing newline":         publishedHMAC + "\n",
		"trailing carriage return": publishedHMAC + "\r",
		"inner tab":                "correct-horse\tbattery-staple",
		"no-break space":           "correct-horse\u00a0battery-staple",
		"byte order mark":          "\ufeffcorrect-horse-battery-staple",
		"zero-width space":         "correct-horse\u200bbattery-staple",
		"NUL":                      "correct-horse\x00battery-staple",
		"delete":                   "correct-horse\x7fbattery-staple",
		"not UTF-8":                "correct-horse\xffbattery-staple",
		"equal bytes":              strings.Repeat("a", 32),
		"equal decoded bytes":      "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 32)),
		"UTF-16":                   "\xff\xfew\x00h\x00s\x00e\x00c\x00_\x00",
		"UTF-16 without its mark":  "w\x00h\x00s\x00e\x00c\x00_\x00w\x00h\x00s\x00e\x00c\x00_\x00",
		"PEM":                      "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n-----END PRIVATE KEY-----\n",
		"quotation marks":          `"` + publishedHMAC + `"`,
		"single quotation marks":   "'" + publishedPublic + "'",
		"signature's version":      "v1," + publishedHMAC,
		"signature's version a":    "v1a," + publishedPublic,
		"URL alphabet":             "whsec_" + strings.Repeat("-_", 20),
		"no padding":               "whsec_" + strings.TrimRight(b64(25), "="),
		"trailing bits":            "whsec_" + b64(25)[:33] + "h==",
		"junk after padding":       "whsec_" + b64(25) + "AAAA",
		"not base64":               "whsec_!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!",
		"private of 33 bytes":      "whsk_" + b64(33),
		"private of 24 bytes":      "whsk_" + b64(24),
		"private, other public":    spoilt,
		"private of equal bytes":   "whsk_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{9}, 32)),
		"public of 31 bytes":       "whpk_" + b64(31),
		"public of 64 bytes":       "whpk_" + b64(64),
		"a printed secret":         signing.GenerateSecret().String(),
		"a printed zero secret":    signing.Secret{}.String(),
	} {
		s, err := signing.ParseSecret(text)
		require.ErrorIs(t, err, signing.ErrSecret, what)
		require.Zero(t, s, what)
		if len(text) > 8 {
			require.NotContains(t, err.Error(), strings.TrimSpace(text)[6:], "%s: the error holds the text", what)
		}
	}
}

// A secret or a key in the form in which a program on Windows has saved it is refused, and the
// error says so, whatever reads it.
func TestTextsAsWindowsSavesThem(t *testing.T) {
	utf16 := func(text string, order binary.AppendByteOrder) (saved string) {
		for _, unit := range utf16.Encode([]rune(text)) {
			saved = string(order.AppendUint16([]byte(saved), unit))
		}
		return saved
	}
	text := publishedHMAC + "\r\n"
	for name, read := range map[string]func(string) (signing.Secret, error){
		"ParseSecret": signing.ParseSecret, "ParseTextSecret": signing.ParseTextSecret, "ParseEd25519Key": signing.ParseEd25519Key,
		"ParseECDSAPublicKey": signing.ParseECDSAPublicKey, "ParseRSAPublicKey": signing.ParseRSAPublicKey, "ParseHexPublicKey": signing.ParseHexPublicKey,
	} {
		for saved, says := range map[string]string{
			"\ufeff" + text: "byte order mark", utf16("\ufeff"+text, binary.LittleEndian): "UTF-16", utf16("\ufeff"+text, binary.BigEndian): "UTF-16", utf16(text, binary.LittleEndian): "UTF-16",
		} {
			_, err := read(saved)
			require.ErrorIs(t, err, signing.ErrSecret, name)
			require.ErrorContains(t, err, says, name)
		}
	}
}

// Ed25519 keys are read as OpenSSL writes them. These are the keys of RFC 8410, section 10.
func TestParseEd25519Key(t *testing.T) {
	const (
		private = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n"
		public  = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n"
	)
	signs, err := signing.ParseEd25519Key(private)
	require.NoError(t, err)
	require.Equal(t, "whsk_1O5y2/kTWErVttjx92n4rTr+fCjL8dT74Jeoj0R1WEI=", signs.Reveal())
	verifies, err := signing.ParseEd25519Key(strings.ReplaceAll(public, "\n", "\r\n"))
	require.NoError(t, err)
	require.Equal(t, "whpk_Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=", verifies.Reveal())
	require.Equal(t, signs.Fingerprint(), verifies.Fingerprint())
	require.Equal(t, signs.Fingerprint(), secret(t, signs.Reveal()).Fingerprint())

	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(ec)
	require.NoError(t, err)
	inPEM := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	for text, says := range map[string]string{
		"": "one block of PEM", publishedPublic: "one block of PEM", private + public: "one block of PEM", private + strings.Repeat("\n", 2000): "one block of PEM",
		inPEM("PRIVATE KEY", der): "another kind than Ed25519", inPEM("PRIVATE KEY", der[1:]): "cannot be read as a key", inPEM("PUBLIC KEY", der): "cannot be read as a key",
		inPEM("ENCRYPTED PRIVATE KEY", der): "not encrypted", inPEM("OPENSSH PRIVATE KEY", der): "PKCS #8",
	} {
		_, err := signing.ParseEd25519Key(text)
		require.ErrorIs(t, err, signing.ErrSecret)
		require.ErrorContains(t, err, says)
	}
	for _, read := range []func(string) (signing.Secret, error){signing.ParseSecret, signing.ParseTextSecret} {
		_, err := read(private)
		require.ErrorContains(t, err, "ParseEd25519Key")
	}
}

// With a public key of small order, a signature that takes no private key is valid
// for every message. The first such key shows it; all are refused.
func TestPublicKeysOfSmallOrderAreRefused(t *testing.T) {
	identity := append([]byte{1}, make([]byte, 31)...)
	forged := append(bytes.Clone(identity), make([]byte, 32)...)
	require.True(t, ed25519.Verify(identity, []byte("anything"), forged))

	for _, key := range []string{
		"0000000000000000000000000000000000000000000000000000000000000000",
		"0000000000000000000000000000000000000000000000000000000000000080",
		"0100000000000000000000000000000000000000000000000000000000000000",
		"0100000000000000000000000000000000000000000000000000000000000080",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
	} {
		raw, err := hex.DecodeString(key)
		require.NoError(t, err)
		_, err = signing.ParseSecret("whpk_" + base64.StdEncoding.EncodeToString(raw))
		require.ErrorIs(t, err, signing.ErrSecret, key)
	}
}

func TestGenerateSecret(t *testing.T) {
	a, b := signing.GenerateSecret(), signing.GenerateSecret()
	require.NotEqual(t, a.Reveal(), b.Reveal())
	require.Len(t, a.Reveal(), len("whsec_")+44)
	require.NotPanics(t, func() { secret(t, a.Reveal()) })
}

func TestFingerprint(t *testing.T) {
	a := signing.GenerateSecret()
	require.Regexp(t, `^[0-9a-f]{8}$`, a.Fingerprint())
	require.Equal(t, a.Fingerprint(), secret(t, a.Reveal()).Fingerprint())
	require.NotEqual(t, a.Fingerprint(), signing.GenerateSecret().Fingerprint())
	require.Equal(t, secret(t, publishedPrivate).Fingerprint(), secret(t, publishedPublic).Fingerprint())
	require.Equal(t, secret(t, publishedPrivate).Fingerprint(), secret(t, publishedSeed).Fingerprint())
	require.Empty(t, signing.Secret{}.Fingerprint())
	require.Empty(t, signing.Secret{}.Reveal())
}

type holder struct {
	Public  signing.Secret
	Pointer *signing.Secret
	private signing.Secret
	pointer *signing.Secret
	inner   struct{ s []signing.Secret }
	keys    map[string]signing.Key
	ring    *signing.Keyring
}

type recorder struct{ strings.Builder }

func (r *recorder) Errorf(format string, args ...any) { fmt.Fprintf(r, format, args...) }

func TestASecretDoesNotLetItselfBePrinted(t *testing.T) {
	for _, text := range []string{publishedHMAC, plainText, publishedPrivate} {
		s := secret(t, text)
		h := holder{Public: s, Pointer: &s, private: s, pointer: &s, ring: ring(t, signing.Key{Secret: s})}
		h.inner.s = []signing.Secret{s}
		h.keys = map[string]signing.Key{"k": {ID: "k", Secret: s}}
		verifier, err := signing.NewVerifier(h.ring, &signing.VerifierConfig{Schemes: []signing.Scheme{schemeFor(s)}})
		require.NoError(t, err)
		// Use it, so that pooled states exist.
		m := signed(t, schemeFor(s), h.ring, now)
		_, err = schemeFor(s).Verify(m, h.ring, now, tolerance)
		require.NoError(t, err)

		var out recorder
		for _, v := range []any{s, &s, h, &h, h.keys, h.keys["k"], h.ring, *h.pointer, verifier, []any{s, &s, h}, fmt.Errorf("%v %+v", s, h)} {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%o", "%b", "%c", "%U", "%e", "%t", "%p", "%T", "%w", "%10.3s"} {
				fmt.Fprintf(&out, verb+"\n", v)
			}
			fmt.Fprintln(&out, v)
			slog.New(slog.NewTextHandler(&out, nil)).Info("x", "v", v, slog.Any("a", v), slog.Group("g", "v", v))
			slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "v", v, slog.Any("a", v), slog.Group("g", "v", v))
			if encoded, err := json.Marshal(v); err == nil {
				out.Write(encoded)
			}
			if encoded, err := xml.Marshal(v); err == nil {
				out.Write(encoded)
			}
			// A failing assertion of testify prints whole values through unexported
			// fields and without calling their methods.
			assert.Equal(&out, v, "something else")
		}
		encoded, err := json.Marshal(map[signing.Secret]signing.Secret{s: s})
		require.NoError(t, err)
		require.Equal(t, `{"`+s.String()+`":"`+s.String()+`"}`, string(encoded))

		printed := out.String()
		require.Contains(t, printed, s.Fingerprint())
		material := strings.TrimPrefix(strings.TrimPrefix(text, "whsec_"), "whsk_")
		for _, form := range forms(text, material) {
			require.NotContains(t, strings.ToLower(printed), strings.ToLower(form))
		}

		for _, v := range []any{s, &s, holder{Public: s}} {
			var stored bytes.Buffer
			require.Error(t, gob.NewEncoder(&stored).Encode(v))
			require.NotContains(t, stored.String(), material)
		}
	}
}

func schemeFor(s signing.Secret) signing.Scheme {
	if strings.HasPrefix(s.Reveal(), "whsk_") {
		return signing.StandardWebhooks{}
	}
	return signing.TimestampBody{}
}

// forms are the ways in which printers write a secret's text and its bytes.
func forms(text, material string) []string {
	all := []string{material}
	for _, raw := range [][]byte{[]byte(text), []byte(material), decoded(material)} {
		if len(raw) == 0 {
			continue
		}
		raw = raw[:12] // a part is bad enough
		all = append(all, string(raw), hex.EncodeToString(raw), fmt.Sprintf("% x", raw), strings.Trim(fmt.Sprintf("%d", raw), "[]"),
			strings.Trim(fmt.Sprintf("%#v", raw), "[]byte{}"))
	}
	return all
}

func decoded(material string) []byte {
	raw, _ := base64.StdEncoding.DecodeString(material)
	return raw
}

// A program that follows pointers by reflection, unexported fields included, finds no
// key.
func TestNoKeyIsReachableByReflection(t *testing.T) {
	for _, text := range []string{publishedHMAC, plainText, publishedPrivate} {
		s := secret(t, text)
		keys := ring(t, signing.Key{Secret: s})
		signed(t, schemeFor(s), keys, now)
		visited := 0
		walk(reflect.ValueOf(&keys), map[unsafe.Pointer]bool{}, func(b []byte) {
			visited++
			require.NotContains(t, string(b), text[8:20])
			if raw := decoded(strings.TrimPrefix(strings.TrimPrefix(text, "whsec_"), "whsk_")); raw != nil {
				require.NotContains(t, string(b), string(raw[:12]))
			}
		})
		require.NotZero(t, visited)
	}
}

func walk(v reflect.Value, seen map[unsafe.Pointer]bool, visit func([]byte)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() && !seen[v.UnsafePointer()] {
			seen[v.UnsafePointer()] = true
			walk(v.Elem(), seen, visit)
		}
	case reflect.Interface:
		walk(v.Elem(), seen, visit)
	case reflect.Struct:
		for i := range v.NumField() {
			walk(v.Field(i), seen, visit)
		}
	case reflect.String:
		visit([]byte(v.String()))
	case reflect.Slice, reflect.Array:
		var b []byte
		for i := range v.Len() {
			if e := v.Index(i); e.Kind() == reflect.Uint8 {
				b = append(b, byte(e.Uint()))
			} else {
				walk(e, seen, visit)
			}
		}
		visit(b)
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			walk(it.Key(), seen, visit)
			walk(it.Value(), seen, visit)
		}
	}
}

func TestPlaceholder(t *testing.T) {
	s := secret(t, publishedHMAC)
	for _, printed := range []string{s.String(), s.GoString(), fmt.Sprintf("%v", s), fmt.Sprintf("%x", &s), s.LogValue().String()} {
		require.Equal(t, "[secret "+s.Fingerprint()+"]", printed)
	}
	require.Equal(t, "[no secret]", fmt.Sprint(signing.Secret{}))
	text, err := s.MarshalText()
	require.NoError(t, err)
	require.Equal(t, s.String(), string(text))
}
