package ident_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/ident"
)

func TestForms(t *testing.T) {
	for _, c := range []struct {
		name  string
		check func(string) error
		good  []string
		bad   []string
	}{
		{"event id", ident.EventID,
			[]string{"a", "evt_01", "A-b_9", strings.Repeat("x", 128)},
			[]string{"", "a.b", "a b", "é", "a\x00", "a\n", strings.Repeat("x", 129)}},
		{"id with a prefix", func(s string) error { return ident.PrefixedID("rpl_", s) },
			[]string{"rpl_a", "rpl_form-1", "rpl_" + strings.Repeat("x", 124)},
			[]string{"", "rpl_", "new", "rpl-1", "wsub_a", "rpl_a.b", "rpl_a/b", "rpl_\x00", "rpl_" + strings.Repeat("x", 125)}},
		{"type", ident.Type,
			[]string{"a", "a.b", "subscriber.updated", "a-b.c_d"},
			[]string{"", ".", ".a", "a.", "a..b", "a.*", "*", "a b", strings.Repeat("x", 129)}},
		{"type pattern", ident.TypePattern,
			[]string{"*", "a", "a.b", "a.*", "a-b.c_d.*"},
			[]string{"", ".*", "a*", "*.b", "a.*.*", "a..*", "**", "a.*.b", "a b.*", strings.Repeat("x", 129)}},
		{"object type", ident.ObjectType,
			[]string{"subscriber", strings.Repeat("x", 64)},
			[]string{"", "a/b", strings.Repeat("x", 65)}},
		{"object id", ident.ObjectID,
			[]string{"1", "urn:x/y@z", "Zürich", strings.Repeat("x", 255)},
			[]string{"", "a\x00b", "a\tb", "\xff", "\u0085", strings.Repeat("x", 256)}},
		{"scope", ident.Scope,
			[]string{"default", "tenant/7"},
			[]string{"", "\n", strings.Repeat("x", 129)}},
		{"proxy", ident.ProxyName,
			[]string{"eu", "EU-1_b", strings.Repeat("x", 64)},
			[]string{"", "a.b", "a b", "é", `a"`, strings.Repeat("x", 65)}},
	} {
		for _, s := range c.good {
			require.NoError(t, c.check(s), "%s %q", c.name, s)
		}
		for _, s := range c.bad {
			require.Error(t, c.check(s), "%s %q", c.name, s)
		}
	}
	require.NoError(t, ident.Version(1))
	require.NoError(t, ident.Version(1<<53-1))
	require.Error(t, ident.Version(0))
	require.Error(t, ident.Version(-1))
	require.Error(t, ident.Version(1<<53))
}

func TestMadeStorable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":              "",
		"as it is":      "as it is",
		"a\x00b":        "a\uFFFDb",
		"a\xff\xfeb":    "a\uFFFDb",
		"123456789é":    "123456789",
		"123456789\xff": "123456789",
		"12345678é":     "12345678é",
		"12345678901":   "1234567890",
	} {
		got := ident.MadeStorable(text, 10)
		require.Equal(t, want, got, "%q", text)
		require.NoError(t, ident.Storable("", got), "%q", text)
	}
}
