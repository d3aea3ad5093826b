package mcp

import (
	"bytes"
	"encoding/json"
	"math/big"
	"math/rand"
	"reflect"
	"slices"
	"testing"
	"unicode/utf8"
)

// A second reading of JSON Schema 2020-12, slow and over decoded values, to
// compare with: the keywords that schemas are mostly made of.

func number64(v any) *big.Rat {
	n, ok := v.(json.Number)
	if !ok {
		return nil
	}
	r, _ := new(big.Rat).SetString(n.String())
	return r
}

func typeNameOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		if number64(v).IsInt() {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

// same compares as JSON Schema does: numbers by value.
func same(a, b any) bool {
	if x, y := number64(a), number64(b); x != nil || y != nil {
		return x != nil && y != nil && x.Cmp(y) == 0
	}
	switch a := a.(type) {
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, same)
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if w, ok := b[k]; !ok || !same(v, w) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a, b)
}

// fitsSchema evaluates a schema for a value.
func fitsSchema(schema, v any) bool {
	if b, ok := schema.(bool); ok {
		return b
	}
	for key, arg := range schema.(map[string]any) {
		if !fitsKeyword(schema.(map[string]any), key, arg, v) {
			return false
		}
	}
	return true
}

func fitsKeyword(schema map[string]any, key string, arg, v any) bool {
	count := func(test func(any) bool, schemas any) (n int) {
		for _, s := range schemas.([]any) {
			if test(s) {
				n++
			}
		}
		return n
	}
	here := func(s any) bool { return fitsSchema(s, v) }
	switch key {
	case "type":
		name := typeNameOf(v)
		names, ok := arg.([]any)
		if !ok {
			names = []any{arg}
		}
		return slices.Contains(names, any(name)) || name == "integer" && slices.Contains(names, any("number"))
	case "enum":
		return slices.ContainsFunc(arg.([]any), func(e any) bool { return same(e, v) })
	case "const":
		return same(arg, v)
	case "allOf":
		return count(here, arg) == len(arg.([]any))
	case "anyOf":
		return count(here, arg) > 0
	case "oneOf":
		return count(here, arg) == 1
	case "not":
		return !here(arg)
	case "if":
		branch, ok := schema["else"]
		if here(arg) {
			branch, ok = schema["then"]
		}
		return !ok || here(branch)
	}
	switch v := v.(type) {
	case json.Number:
		return fitsNumber(key, number64(arg), number64(v))
	case string:
		n, limit := utf8.RuneCountInString(v), number64(arg)
		return (key != "minLength" || big.NewRat(int64(n), 1).Cmp(limit) >= 0) && (key != "maxLength" || big.NewRat(int64(n), 1).Cmp(limit) <= 0)
	case []any:
		return fitsArray(schema, key, arg, v)
	case map[string]any:
		return fitsObject(schema, key, arg, v)
	}
	return true
}

func fitsNumber(key string, limit, n *big.Rat) bool {
	switch key {
	case "minimum":
		return n.Cmp(limit) >= 0
	case "maximum":
		return n.Cmp(limit) <= 0
	case "exclusiveMinimum":
		return n.Cmp(limit) > 0
	case "exclusiveMaximum":
		return n.Cmp(limit) < 0
	case "multipleOf":
		return new(big.Rat).Quo(n, limit).IsInt()
	}
	return true
}

func fitsArray(schema map[string]any, key string, arg any, v []any) bool {
	size := big.NewRat(int64(len(v)), 1)
	switch key {
	case "minItems":
		return size.Cmp(number64(arg)) >= 0
	case "maxItems":
		return size.Cmp(number64(arg)) <= 0
	case "uniqueItems":
		for i := range v {
			if arg == true && slices.ContainsFunc(v[:i], func(w any) bool { return same(v[i], w) }) {
				return false
			}
		}
	case "prefixItems":
		for i, s := range arg.([]any) {
			if i < len(v) && !fitsSchema(s, v[i]) {
				return false
			}
		}
	case "items":
		prefix, _ := schema["prefixItems"].([]any)
		for _, w := range v[min(len(v), len(prefix)):] {
			if !fitsSchema(arg, w) {
				return false
			}
		}
	case "contains":
		n := int64(0)
		for _, w := range v {
			if fitsSchema(arg, w) {
				n++
			}
		}
		least := big.NewRat(1, 1)
		if m := number64(schema["minContains"]); m != nil {
			least = m
		}
		most := number64(schema["maxContains"])
		return big.NewRat(n, 1).Cmp(least) >= 0 && (most == nil || big.NewRat(n, 1).Cmp(most) <= 0)
	}
	return true
}

func fitsObject(schema map[string]any, key string, arg any, v map[string]any) bool {
	size := big.NewRat(int64(len(v)), 1)
	has := func(name any) bool { _, ok := v[name.(string)]; return ok }
	switch key {
	case "minProperties":
		return size.Cmp(number64(arg)) >= 0
	case "maxProperties":
		return size.Cmp(number64(arg)) <= 0
	case "required":
		return !slices.ContainsFunc(arg.([]any), func(name any) bool { return !has(name) })
	case "dependentRequired":
		for name, others := range arg.(map[string]any) {
			if has(name) && slices.ContainsFunc(others.([]any), func(name any) bool { return !has(name) }) {
				return false
			}
		}
	case "properties":
		for name, s := range arg.(map[string]any) {
			if has(name) && !fitsSchema(s, v[name]) {
				return false
			}
		}
	case "additionalProperties":
		known, _ := schema["properties"].(map[string]any)
		for name, w := range v {
			if _, ok := known[name]; !ok && !fitsSchema(arg, w) {
				return false
			}
		}
	case "propertyNames":
		for name := range v {
			if !fitsSchema(arg, name) {
				return false
			}
		}
	}
	return true
}

// someNumbers are near each other, in different clothes.
var someNumbers = []string{"0", "-0.0", "1", "1.0", "2", "3", "10e-1", "0.5", "1.5", "-1", "1e2", "100", "9007199254740993", "9007199254740993.0", "0.1", "1e-2"}

func pickNumber(c chooser) json.Number { return json.Number(someNumbers[c.Intn(len(someNumbers))]) }

func pickName(c chooser) string { return []string{"a", "b", "é", ""}[c.Intn(4)] }

// someValue makes a small value.
func someValue(c chooser, depth int) any {
	switch n := c.Intn(8); {
	case n == 0:
		return nil
	case n == 1:
		return c.Intn(2) == 0
	case n <= 3:
		return pickNumber(c)
	case n == 4 || depth == 0:
		return []string{"", "a", "b", "äöü", "\U0001F600"}[c.Intn(5)]
	case n == 5:
		list := make([]any, c.Intn(4))
		for i := range list {
			list[i] = someValue(c, depth-1)
		}
		return list
	}
	object := make(map[string]any)
	for range c.Intn(4) {
		object[pickName(c)] = someValue(c, depth-1)
	}
	return object
}

// someSchema makes a schema of the keywords that fitsSchema knows.
func someSchema(c chooser, depth int) any {
	if n := c.Intn(12); n < 2 {
		return n == 0
	}
	schema := make(map[string]any)
	inner := func() any { return someSchema(c, depth-1) }
	few := func(make func() any) []any {
		list := []any{make()}
		for range c.Intn(3) {
			list = append(list, make())
		}
		return list
	}
	names := func() []any {
		list := []any{}
		for _, name := range []string{"a", "b", "é"}[:c.Intn(4)] {
			list = append(list, name)
		}
		return list
	}
	small := func() json.Number { return json.Number([]string{"0", "1", "2", "3"}[c.Intn(4)]) }
	types := []any{"null", "boolean", "string", "integer", "number", "array", "object"}
	for range 1 + c.Intn(4) {
		n := c.Intn(27)
		if depth == 0 && n >= 15 {
			n %= 15
		}
		switch n {
		case 0, 1:
			schema["type"] = types[c.Intn(len(types))]
		case 2:
			at := c.Intn(len(types))
			schema["type"] = []any{types[at], types[(at+1+c.Intn(6))%len(types)]}
		case 3:
			schema["enum"] = few(func() any { return someValue(c, 1) })
		case 4:
			schema["const"] = someValue(c, 2)
		case 5:
			schema[[]string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}[c.Intn(4)]] = pickNumber(c)
		case 6:
			schema["multipleOf"] = json.Number([]string{"1", "0.5", "3", "1e-2"}[c.Intn(4)])
		case 7:
			schema[[]string{"minLength", "maxLength"}[c.Intn(2)]] = small()
		case 8:
			schema[[]string{"minItems", "maxItems"}[c.Intn(2)]] = small()
		case 9:
			schema[[]string{"minProperties", "maxProperties"}[c.Intn(2)]] = small()
		case 10:
			schema["uniqueItems"] = c.Intn(3) > 0
		case 11, 12:
			schema["required"] = names()
		case 13:
			schema["dependentRequired"] = map[string]any{pickName(c): names()}
		case 14:
			schema[[]string{"minContains", "maxContains"}[c.Intn(2)]] = small()
		case 15, 16:
			schema["properties"] = map[string]any{pickName(c): inner(), "a": inner()}
		case 17:
			schema["additionalProperties"] = inner()
		case 18:
			schema["propertyNames"] = inner()
		case 19:
			schema["items"] = inner()
		case 20:
			schema["prefixItems"] = few(inner)
		case 21:
			schema["contains"] = inner()
		case 22:
			schema[[]string{"allOf", "anyOf", "oneOf"}[c.Intn(3)]] = few(inner)
		case 23:
			schema["not"] = inner()
		case 24, 25, 26:
			schema[[]string{"if", "then", "else"}[n-24]] = inner()
		}
	}
	return schema
}

// agree checks one schema and one value both ways.
func agree(t *testing.T, c chooser) (valid bool) {
	schema, value := someSchema(c, 3), someValue(c, 3)
	text, _ := json.Marshal(schema)
	doc, _ := json.Marshal(value)
	s, err := CompileSchema(text, nil)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	dec.Decode(&value)
	got, want := s.Validate(doc), fitsSchema(schema, value)
	if (got == nil) != want {
		t.Fatalf("schema %s\ndocument %s\nfits: %v, got %v", text, doc, want, got)
	}
	return want
}

func TestValidateAgreesWithASecondReading(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	valid := 0
	const n = 40000
	for range n {
		if agree(t, r) {
			valid++
		}
	}
	if valid < n/10 || valid > n*9/10 {
		t.Errorf("%d of %d documents fit", valid, n)
	}
}

func FuzzValidate(f *testing.F) {
	for _, seed := range []string{"", "properties and additionalProperties", "\x05\x03\x16\x02\x05\x01", "\x0b\x01\x14\x02\x0b\x01\x05\x04\x05\x03"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, choices []byte) { agree(t, &bytesChooser{choices}) })
}
