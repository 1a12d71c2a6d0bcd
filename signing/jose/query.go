package jose

import (
	"errors"
	"net/url"
	"slices"
	"strings"
)

// canonical is the text of Atlassian's query string hash. It has the method, the path
// without the base and without a slash at its end, and the parameters without jwt. They
// are sorted and encoded, and those of one name are joined by commas. target is the
// request's path and query.
//
// Source: https://developer.atlassian.com/cloud/jira/platform/understanding-jwt-for-connect-apps/#creating-the-canonical-request
func canonical(method, target, base string) (string, error) {
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return "", errors.New("the request's URL is not well-formed")
	}
	path, found := strings.CutPrefix(u.EscapedPath(), base)
	if !found {
		return "", errors.New("the request's path does not begin with BasePath")
	}
	if path = strings.ReplaceAll(strings.TrimSuffix(path, "/"), "&", "%26"); !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "", errors.New("the request's query is not well-formed")
	}
	delete(values, "jwt")
	var query []string
	for name, all := range values {
		encoded := make([]string, 0, len(all))
		for _, value := range all {
			encoded = append(encoded, encode(value))
		}
		slices.Sort(encoded)
		query = append(query, encode(name)+"="+strings.Join(encoded, ","))
	}
	slices.Sort(query)
	return strings.ToUpper(method) + "&" + path + "&" + strings.Join(query, "&"), nil
}

// encode is RFC 3986's, which encodes all but the unreserved characters.
func encode(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}
