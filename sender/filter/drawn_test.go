package filter_test

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// drawnScalar is a string, a number, true, false or null, as JSON.
func drawnScalar() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{`""`, `"a"`, `"\u0061b"`, `"abc"`, `"b"`, `"\""`, `"true"`, `"1"`}),
		rapid.SampledFrom([]string{"0", "-0.0", "1", "1.0", "1e0", "-1", "10", "1e1", "1.5", "15e-1", "0.15e+1", "2", "-0.5", "0.05", "5e-2", "100", "1E400", "-1e400"}),
		rapid.SampledFrom([]string{"true", "false", "null"}),
	)
}

// drawnValue is a value of a body, with objects and arrays up to a depth.
func drawnValue(depth int) *rapid.Generator[string] {
	if depth == 0 {
		return drawnScalar()
	}
	return rapid.OneOf(drawnScalar(),
		rapid.Custom(func(t *rapid.T) string {
			return "[" + strings.Join(rapid.SliceOfN(drawnValue(depth-1), 0, 3).Draw(t, "elements"), " ,") + "]"
		}),
		rapid.Custom(func(t *rapid.T) string {
			return "{" + strings.Join(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
				return rapid.SampledFrom([]string{`"a"`, `"b"`, `"a.b"`, `"\u0061"`, `"other"`}).Draw(t, "name") + " :\n" + drawnValue(depth-1).Draw(t, "value")
			}), 0, 4).Draw(t, "members"), ",") + "}"
		}),
	)
}

// drawnExpression is an expression of some members, no two of which have the same name.
func drawnExpression(depth int) *rapid.Generator[string] {
	names := []string{`"data"`, `"data.a"`, `"data.b"`, `"data.a.b"`, `"data.b.a"`, `"data.a\\.b"`, `"data.a.a.b"`, `"object.type"`, `"object.id"`}
	if depth > 0 {
		names = append(names, `"and"`, `"or"`, `"not"`)
	}
	return rapid.Custom(func(t *rapid.T) string {
		var members []string
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 3, rapid.ID).Draw(t, "names") {
			value := ""
			switch name {
			case `"and"`, `"or"`:
				value = "[" + strings.Join(rapid.SliceOfN(drawnExpression(depth-1), 1, 3).Draw(t, "parts"), ",") + "]"
			case `"not"`:
				value = drawnExpression(depth-1).Draw(t, "not")
			default:
				value = drawnOperators().Draw(t, "operators")
			}
			members = append(members, name+":"+value)
		}
		return "{" + strings.Join(members, ",") + "}"
	})
}

// drawnOperators is what stands behind a path.
func drawnOperators() *rapid.Generator[string] {
	ordered := drawnScalar().Filter(func(v string) bool { return v != "true" && v != "false" && v != "null" })
	return rapid.OneOf(drawnScalar(),
		rapid.SampledFrom([]string{`{"exists":true}`, `{"exists":false}`}),
		rapid.Custom(func(t *rapid.T) string {
			return `{"in":[` + strings.Join(rapid.SliceOfN(drawnScalar(), 1, 5).Draw(t, "list"), ",") + "]}"
		}),
		rapid.Custom(func(t *rapid.T) string {
			return `{"prefix":` + rapid.SampledFrom([]string{`""`, `"a"`, `"ab"`, `"abc"`}).Draw(t, "prefix") + "}"
		}),
		rapid.Custom(func(t *rapid.T) string {
			var all []string
			for _, op := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"lt", "lte", "gt", "gte"}), 1, 2, rapid.ID).Draw(t, "bounds") {
				all = append(all, fmt.Sprintf("%q:%s", op, ordered.Draw(t, "bound")))
			}
			return "{" + strings.Join(all, ",") + "}"
		}),
	)
}
