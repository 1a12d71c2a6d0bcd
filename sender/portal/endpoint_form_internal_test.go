package portal

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/sender"
	expression "github.com/surehook/surehook/sender/filter"
)

// A filter is shown in a form that takes it back, however long and deep it is.
func TestFilterFitsItsForm(t *testing.T) {
	t.Parallel()
	var numbers, quotes []string
	for i := range 1600 {
		numbers = append(numbers, strconv.Itoa(1000+i))
		quotes = append(quotes, fmt.Sprintf(`"\"%d"`, i%1000))
	}
	long := `{"data.n":{"in":[` + strings.Join(numbers, ",") + `]}}`
	for name, text := range map[string]string{
		"long": long, "long and deep": strings.Repeat(`{"or":[{"not":`, 4) + long + strings.Repeat(`},{"data.b":1}]}`, 4), "of quotation marks": `{"data.n":{"in":[` + strings.Join(quotes[:1000], ",") + `]}}`,
	} {
		f, err := expression.Parse([]byte(text))
		require.NoError(t, err, name)
		shown := entriesIn(&sender.Subscription{Filter: f}).Filter
		require.Equal(t, f.String(), compact(shown), name)
		sent := url.Values{"filter": {strings.ReplaceAll(shown, "\n", "\r\n")}}.Encode()
		require.LessOrEqual(t, len(sent), maxForm*3/4, "%s: the other fields need room, too", name)
	}
	f, err := expression.Parse([]byte(`{"data.n":1}`))
	require.NoError(t, err)
	require.Equal(t, "{\n  \"data.n\": 1\n}", entriesIn(&sender.Subscription{Filter: f}).Filter)
}
