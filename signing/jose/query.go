package jose

import (
	"errors"
	"net/url"
	"slices"
	"strings"
)

// canonical is the text of Atlassian's query string hash. It has the method, the path
// without the base and without a slash at its end, and the parameters without jwt. These are
// sorted by their encoded names, and those of one name are sorted and joined by commas. target
// is the request's path and query.
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
	var names []string
	joined := map[string]string{}
	for name, all := range values {
		slices.Sort(all)
		for i := range all {
			all[i] = encode(all[i])
		}
		name = encode(name)
		names, joined[name] = append(names, name), strings.Join(all, ",")
	}
	slices.Sort(names) // without the values: in "a1=" and "a=", the 1 would stand before the =
	var query []string
	for _, name := range names {
		query = append(query, name+"="+joined[name])
	}
	return strings.ToUpper(method) + "&" + path + "&" + strings.Join(query, "&"), nil
}

// encode is RFC 3986's, which encodes all but the unreserved characters.
func encode(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}
