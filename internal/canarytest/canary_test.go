package canarytest_test

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/internal/canarytest"
)

// Each form of a leaked secret is found, whatever stands around it.
func TestFind(t *testing.T) {
	for range 50 {
		secret := make([]byte, 20)
		_, _ = rand.Read(secret)
		var cage canarytest.Cage
		cage.Add("the key", secret)
		text, err := json.Marshal(string(secret))
		require.NoError(t, err)
		for _, leak := range []string{
			string(secret), hex.EncodeToString(secret), fmt.Sprintf("%X", secret), fmt.Sprintf("%d", secret), fmt.Sprintf("%#v", secret), fmt.Sprintf("%q", secret),
			url.QueryEscape(string(secret)), string(text),
			base64.StdEncoding.EncodeToString(secret), base64.URLEncoding.EncodeToString(append([]byte("a"), secret...)),
			base64.StdEncoding.EncodeToString([]byte("ab" + string(secret) + "c")), base64.RawURLEncoding.EncodeToString([]byte("abc" + string(secret) + "de")),
		} {
			require.NotEmpty(t, cage.Find([]byte("before "+leak+" after")), "%q", leak)
		}
		require.Empty(t, cage.Find([]byte("nothing is here")))
	}
}
