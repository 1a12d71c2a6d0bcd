// Package filter has the expressions by which a subscription asks for some of the events of
// its types, by their content. An expression is JSON:
//
//	{"data.status": "paid", "data.amount": {"gte": 100}}
//
// It is small, bounded, and total: it is checked once, when it is parsed, and every event
// then matches it or does not. There is no error at run time, no regular expression, and
// nothing whose cost grows faster than the event. The package knows events by their bytes
// alone, and imports nothing but the standard library.
//
// # Expressions
//
// An expression is an object with one or more members, all of which must hold. A member is
// one of
//
//	"and": [expression, …]    all of them hold
//	"or":  [expression, …]    at least one of them holds
//	"not": expression         it does not hold
//	path:  value              the same as {"eq": value}
//	path:  {operator: …, …}   one value at the path meets all of the operators
//
// The operators are
//
//	"eq": value                          it is equal
//	"in": [value, …]                     it is equal to one of them
//	"prefix": "text"                     it is a string that begins with the text
//	"lt", "lte", "gt", "gte": value      it is a number, or a string, that is less, …
//	"exists": true                       the path is there, whatever its value, null included
//	"exists": false                      the path is not there
//
// A value is a string, a number, true, false or null. "exists" stands alone: "not" and "and"
// say the rest.
//
// # Paths
//
// A path begins with "data", or is "object.type" or "object.id". It names members of objects,
// from the event's body on, with a dot between: "data.customer.country". A dot or a backslash
// that belongs to a name has a backslash before it: in JSON, "data.a\\.b" is the member "a.b"
// of data. Names are compared as they are, upper and lower case apart.
//
// # Values
//
// A path that leads nowhere has no value, and no operator holds of it except "exists":
// false. So {"not": {"data.status": "void"}} holds if there is no status. null is a value:
// it is equal to null alone, which a path that is not there is not.
//
// An array stands for its elements, on the way and at the end of a path, in any depth.
// Whatever holds of one of its elements holds of it. {"data.items.sku": "X"} holds if some
// item has this sku, and {"not": {"data.tags": "a"}} if no tag is "a". Several operators
// at one path must hold of the same element. An empty array exists, and has no value. A
// path that goes on past an object that is in an array goes on in each of them. If an
// object has a name twice, against the advice of RFC 8259, both count, as elements do.
//
// Values of different types are never equal, and neither is less. Numbers are compared exactly, as
// decimal numbers of any length: 1, 1.0 and 1e0 are equal, and 2^53 and 2^53+1 are not.
// Strings are compared by their bytes in UTF-8, after their escapes are resolved: so times
// of RFC 3339 compare well if all are in UTC and have equally many digits. Objects are equal
// to nothing.
package filter
