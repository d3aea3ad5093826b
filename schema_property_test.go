package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"math/big"
	"math/rand"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A chooser picks numbers: a random one, or what a fuzzer says.
type chooser interface{ Intn(n int) int }

type bytesChooser struct{ data []byte }

func (b *bytesChooser) Intn(n int) int {
	if len(b.data) == 0 {
		return 0
	}
	c := int(b.data[0])
	b.data = b.data[1:]
	return c % n
}

// leafTypes are what generated types are made of. Those in textTypes are
// strings whose form the schema does not assert.
var leafTypes = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int64](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint64](),
	reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[string](), reflect.TypeFor[plainText](), reflect.TypeFor[any](), reflect.TypeFor[json.RawMessage](),
	reflect.TypeFor[time.Duration](), reflect.TypeFor[*big.Int](), reflect.TypeFor[node](), reflect.TypeFor[*left](), reflect.TypeFor[tree](), reflect.TypeFor[page[int8]](), reflect.TypeFor[inner](),
	reflect.TypeFor[int16](), reflect.TypeFor[int32](), reflect.TypeFor[uint](), reflect.TypeFor[uint32](), reflect.TypeFor[uintptr](), reflect.TypeFor[idList](), reflect.TypeFor[matrix](),
	reflect.TypeFor[nestedList](), reflect.TypeFor[ring](), reflect.TypeFor[evenType](), reflect.TypeFor[entryOf[string, *ring]](), reflect.TypeFor[OneWay](),
}

var textTypes = []reflect.Type{
	reflect.TypeFor[time.Time](), reflect.TypeFor[netip.Addr](), reflect.TypeFor[*url.URL](), reflect.TypeFor[[]byte](), reflect.TypeFor[json.Number](), reflect.TypeFor[map[textKey]int](), reflect.TypeFor[ownJSON](), reflect.TypeFor[knowsItems](),
	reflect.TypeFor[grade](), reflect.TypeFor[*gradeAt](), reflect.TypeFor[wordAt](), reflect.TypeFor[[]coin](), reflect.TypeFor[blob](), reflect.TypeFor[slog.Level](), reflect.TypeFor[netip.Prefix](), reflect.TypeFor[net.IP](),
	reflect.TypeFor[*big.Float](), reflect.TypeFor[*big.Rat](), reflect.TypeFor[map[grade]bool](), reflect.TypeFor[map[netip.Addr]int](), reflect.TypeFor[map[time.Duration]string](), reflect.TypeFor[everything](),
}

// embeddable are structs that can be embedded, where their fields hide each
// other in many ways.
var embeddable = []reflect.Type{
	reflect.TypeFor[Base](), reflect.TypeFor[*Base](), reflect.TypeFor[Other](), reflect.TypeFor[Deepest](), reflect.TypeFor[OneWay](), reflect.TypeFor[*OtherWay](), reflect.TypeFor[Tagged](), reflect.TypeFor[*Shadow](),
}

// fieldTags say something of any field, or of those of one kind.
var fieldTags = []struct {
	tag  string
	kind reflect.Kind
}{
	{"some text, and more", reflect.Invalid}, {"required=true", reflect.Invalid}, {"required=false,deprecated=true", reflect.Invalid}, {"a number,default=1", reflect.Int8},
	{"default=x y,maxLength=1000", reflect.String}, {"default=[]", reflect.Slice}, {"default={},minProperties=0", reflect.Map}, {"default=1.5e3", reflect.Float64},
}

// generatedType makes a type out of leaves.
func generatedType(c chooser, leaves []reflect.Type, depth int) reflect.Type {
	kind := c.Intn(9)
	if depth == 0 {
		kind += 3
	}
	inside := func() reflect.Type { return generatedType(c, leaves, depth-1) }
	switch kind {
	case 0:
		return reflect.SliceOf(inside())
	case 1:
		return reflect.ArrayOf(c.Intn(3), inside())
	case 2:
		return reflect.PointerTo(inside())
	}
	if depth == 0 {
		return leaves[c.Intn(len(leaves))]
	}
	switch kind {
	case 3:
		return reflect.MapOf([]reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[int16](), reflect.TypeFor[uint8]()}[c.Intn(3)], inside())
	case 4, 5:
		return leaves[c.Intn(len(leaves))]
	}
	return generatedStruct(c, leaves, depth)
}

func generatedStruct(c chooser, leaves []reflect.Type, depth int) reflect.Type {
	var fields []reflect.StructField
	for i := range 1 + c.Intn(4) {
		f := reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: generatedType(c, leaves, depth-1)}
		name := []string{fmt.Sprintf("f%d", i), "", fmt.Sprintf("f.%d", i)}[c.Intn(3)]
		option := []string{"", "", ",omitempty", ",omitzero", ",string", "-"}[c.Intn(6)]
		switch said := fieldTags[c.Intn(len(fieldTags))]; {
		case option == "-":
			f.Tag = `json:"-"`
		case option == "" && (said.kind == reflect.Invalid || said.kind == f.Type.Kind() && f.Type.Name() != "Number" && !hasOwnJSON(f.Type) && !isText(f.Type)):
			f.Tag = reflect.StructTag(`json:"` + name + `" jsonschema:"` + said.tag + `"`)
		case option == ",string" && (hasOwnJSON(f.Type) || !slices.Contains([]reflect.Kind{reflect.Bool, reflect.Int, reflect.Uint8, reflect.Float64, reflect.String}, f.Type.Kind())):
			f.Tag = reflect.StructTag(`json:"` + name + `"`)
		default:
			f.Tag = reflect.StructTag(`json:"` + name + option + `"`)
		}
		fields = append(fields, f)
	}
	for range c.Intn(3) {
		typ := embeddable[c.Intn(len(embeddable))]
		name := strings.TrimPrefix(strings.TrimPrefix(typ.String(), "*"), "mcp.")
		if !slices.ContainsFunc(fields, func(f reflect.StructField) bool { return f.Name == name }) {
			fields = append(fields, reflect.StructField{Name: name, Type: typ, Anonymous: true})
		}
	}
	return reflect.StructOf(fields)
}

// isText reports whether encoding/json writes a type of kind slice as text.
func isText(t reflect.Type) bool { return t.Kind() == reflect.Slice && isBytes(t) }

// marshalled returns the JSON of a random value, if encoding/json can make it.
func marshalled(t *testing.T, typ reflect.Type, r *rand.Rand) ([]byte, bool) {
	v := reflect.New(typ)
	randomValue(r, v.Elem(), 0)
	text, err := json.Marshal(v.Interface())
	if err != nil {
		t.Logf("%v: %v", typ, err)
	}
	return text, err == nil
}

func TestWhatIsMarshalledFitsGeneratedTypes(t *testing.T) {
	r := rand.New(rand.NewSource(7))
	leaves, texts := append(slices.Clone(leafTypes), textTypes...), 0
	for range 1000 {
		typ := generatedType(r, leaves, 3)
		s, err := compileInferred(typ)
		if err != nil {
			t.Fatalf("%v: %v", typ, err)
		}
		for range 4 {
			text, ok := marshalled(t, typ, r)
			if !ok {
				continue
			}
			if texts++; s.Validate(text) != nil {
				sent, _ := schemaForType(typ)
				t.Fatalf("%v: %v\n%s\n%s", typ, s.Validate(text), text, sent)
			}
		}
	}
	if texts < 3000 {
		t.Errorf("only %d values", texts)
	}
}

// TestWhatFitsTheSchemaDecodes changes marshalled values here and there. What
// still fits the schema decodes, but for numbers out of the range of 64 bits
// and for the forms of text, which schemas do not assert.
func TestWhatFitsTheSchemaDecodes(t *testing.T) {
	bytesApart := func(t reflect.Type) bool { return t.Kind() == reflect.Uint8 } // []byte is base64
	plain := slices.DeleteFunc(slices.Clone(leafTypes), bytesApart)
	for name, leaves := range map[string][]reflect.Type{"plain": plain, "text": append(slices.Clone(leafTypes), textTypes...)} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewSource(18))
			var seen agreement
			for range 1200 {
				typ := generatedStruct(r, leaves, 3)
				s, err := compileInferred(typ)
				if err != nil {
					t.Fatalf("%v: %v", typ, err)
				}
				text, ok := marshalled(t, typ, r)
				for n := 0; ok && n < 8; n++ {
					changed := text
					for range 1 + r.Intn(2) {
						changed = mutated(t, changed, r)
					}
					seen.check(t, typ, s, changed, name == "text")
				}
			}
			if seen.fit < 500 || seen.same < 1000 || seen.refused < 500 || seen.twice < 50 || seen.numbers < 10 {
				t.Errorf("too little was seen: %+v", seen)
			}
		})
	}
}

// An agreement counts how schema, decodeArguments and encoding/json agree.
type agreement struct{ fit, same, refused, twice, integers, numbers, folded int }

// check compares what the three make of a document. texts: the type may have
// texts of which the schema does not assert the form.
func (a *agreement) check(t *testing.T, typ reflect.Type, s *Schema, doc []byte, texts bool) {
	t.Helper()
	got, want := reflect.New(typ), reflect.New(typ)
	err, stdErr := decodeArguments(doc, got.Interface()), unmarshalStd(string(doc), want.Interface())
	report := func(why string) {
		sent, _ := schemaForType(typ)
		t.Fatalf("%s:\n%v\n%s\n%s\ndecodes to\n%+v, %v\nand for encoding/json to\n%+v, %v", why, typ, doc, sent, got.Elem(), err, want.Elem(), stdErr)
	}
	if s.Validate(doc) == nil {
		a.fit++
		twice := err != nil && strings.Contains(err.Error(), errTwice.Error()) // in what is open, where no schema looks
		if err != nil && !twice && !(stdErr != nil && (texts || strings.Contains(err.Error(), "within the range of"))) {
			report("what fits the schema does not decode")
		}
	}
	switch {
	case err == nil && aboutIntegers(stdErr):
		a.integers++
	case err == nil && stdErr != nil && foldsNames(typ, doc): // and what it found under the wrong name did not suit it
		a.folded++
	case err == nil && stdErr != nil:
		report("encoding/json does not decode")
	case err == nil && !reflect.DeepEqual(got.Interface(), want.Interface()):
		if a.folded++; !foldsNames(typ, doc) {
			report("the values differ")
		}
	case err == nil:
		a.same++
	case strings.Contains(err.Error(), errTwice.Error()):
		a.twice++
	case stdErr == nil:
		report("encoding/json decodes")
	case strings.Contains(err.Error(), "within the range of"):
		a.numbers++
	default:
		a.refused++
	}
}

// foldsNames reports whether a document has names that encoding/json may take
// for others: mutated writes such ones in upper case.
func foldsNames(typ reflect.Type, doc []byte) bool {
	var fold func(s *scanner) bool
	names := map[string]bool{}
	collectNames(typ, names, map[reflect.Type]bool{})
	fold = func(s *scanner) (found bool) {
		switch s.peek() {
		case '{':
			s.open('{')
			for n := 0; s.more('}', n); n++ {
				name := string(s.key())
				for known := range names {
					found = found || known != name && strings.EqualFold(known, name)
				}
				found = fold(s) || found
			}
		case '[':
			s.open('[')
			for n := 0; s.more(']', n); n++ {
				found = fold(s) || found
			}
		default:
			s.skip()
		}
		return found
	}
	return fold(&scanner{data: doc})
}

// collectNames finds all names of members within a type.
func collectNames(t reflect.Type, names map[string]bool, seen map[reflect.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		collectNames(t.Elem(), names, seen)
	case reflect.Struct:
		for _, f := range jsonFields(t) {
			names[f.name] = true
			collectNames(f.typ, names, seen)
		}
	}
}

// oddValues take the place of others.
var oddValues = []string{`null`, `true`, `0`, `-1`, `-0`, `300`, `1.0`, `2.5e1`, `1.5`, `-70000`, `4294967296`, `9223372036854775808`, `1e19`, `1e400`, `-1e-400`, `""`, `"x"`, `"1"`, `"-5"`, `"1.0"`, `"\"x\""`, `"true"`, `"AQ=="`, `"g3"`,
	`"2026-01-02T03:04:05Z"`, `"::1"`, `"INFO"`, `[]`, `[1]`, `[null]`, `[[],[]]`, `{}`, `{"f0":1}`, `{"1":true}`, `{"x":1}`, `{"n":null}`, strconv.Itoa(math.MaxInt)}

// mutated changes one value or member in a document, which stays JSON.
func mutated(t *testing.T, text []byte, r *rand.Rand) []byte {
	type place struct{ key, from, to int } // of a value, and of the name before it
	var places []place
	s := scanner{data: text}
	var walk func(key int)
	walk = func(key int) {
		c := s.peek()
		from := s.pos
		switch c {
		case '{':
			s.open('{')
			for n := 0; s.more('}', n); n++ {
				s.peek()
				key := s.pos
				s.key()
				walk(key)
			}
		case '[':
			s.open('[')
			for n := 0; s.more(']', n); n++ {
				walk(-1)
			}
		default:
			s.skip()
		}
		places = append(places, place{key, from, s.pos})
	}
	if walk(-1); s.err != nil {
		t.Fatal(s.err)
	}
	p := places[r.Intn(len(places))]
	odd := oddValues[r.Intn(len(oddValues))]
	with := func(from int, insert string, to int) []byte {
		return slices.Concat(text[:from], []byte(insert), text[to:])
	}
	change := r.Intn(8)
	if p.key < 0 {
		change += 4
	}
	switch {
	case change == 0: // a member less
		if text[p.to] == ',' {
			return with(p.key, "", p.to+1)
		}
		return with(len(bytes.TrimSuffix(text[:p.key], []byte(","))), "", p.to)
	case change == 1: // one twice
		return with(p.key, string(text[p.key:p.to])+",", p.key)
	case change == 2: // one twice, with something else
		return with(p.key, string(text[p.key:p.from])+odd+",", p.key)
	case change == 3 && !bytes.Contains(text[p.key:p.from], []byte(`\`)): // a name in another case
		return with(p.key, strings.ToUpper(string(text[p.key:p.from])), p.from)
	case text[p.from] == '{' && p.to-p.from > 2 && change < 7: // a member more
		return with(p.to-1, `,"more":`+odd, p.to-1)
	}
	return with(p.from, odd, p.to)
}

// FuzzInfer makes types out of what the fuzzer says: each has a schema that
// compiles, that what is marshalled fits, and that agrees with what decodes.
func FuzzInfer(f *testing.F) {
	for _, seed := range []string{"", "\x06\x03\x00\x01\x02", "struct of many", "\x03\x00\x03\x01\x03\x02\x04", "\x00\x00\x00\x00\x00\x00"} {
		f.Add([]byte(seed), int64(len(seed)))
	}
	leaves := append(slices.Clone(leafTypes), textTypes...)
	f.Fuzz(func(t *testing.T, choices []byte, seed int64) {
		typ := generatedType(&bytesChooser{choices}, leaves, 3)
		sent, err := inferSchema(typ, false)
		if err != nil {
			t.Fatalf("%v: %v", typ, err)
		}
		if _, err := CompileSchema(sent, nil); err != nil {
			t.Fatalf("%v: %v\n%s", typ, err, sent)
		}
		marked, err := inferSchema(typ, true)
		if err != nil {
			t.Fatal(err)
		}
		k := schemaCompiler{opts: new(SchemaOptions), inferred: true}
		s, err := k.compile(marked, dialect{vocabularies: vocab2020})
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewSource(seed))
		if text, ok := marshalled(t, typ, r); ok {
			if err := s.Validate(text); err != nil {
				t.Fatalf("%v: %v\n%s\n%s", typ, err, text, marked)
			}
			new(agreement).check(t, typ, s, mutated(t, text, r), true)
		}
	})
}

// FuzzDefaults fills in defaults: the document stays JSON, what was there is
// there still, and nothing is left to fill in. Where the schema is simple, the
// result is what a slow reading makes of it, and so fits if that fits.
func FuzzDefaults(f *testing.F) {
	for _, c := range []struct{ schema, doc string }{
		{`{"properties":{"a":{"default":1},"b":{"default":{"c":2}}}}`, `{"b":{"c":null}}`},
		{`{"properties":{"a":{"properties":{"b":{"default":[]}}}},"allOf":[{"properties":{"z":{"default":""}}}]}`, ` { "a" : { } } `},
		{`{"$ref":"#/$defs/x","$defs":{"x":{"properties":{"\"":{"default":"\u0000"}}}}}`, `{"\u0022":1}`},
		{`{"items":{"properties":{"a":{"default":1}}}}`, `[{},{"a":2},[],{"b":3}]`},
	} {
		f.Add([]byte(c.schema), []byte(c.doc))
	}
	f.Fuzz(func(t *testing.T, schema, doc []byte) {
		s, err := CompileSchema(schema, nil)
		if err != nil || validJSON(doc) != nil || repeatedMember(doc) != nil {
			return
		}
		filled := s.applyDefaults(bytes.Clone(doc))
		if err := validJSON(filled); err != nil {
			t.Fatalf("%s becomes %s: %v", doc, filled, err)
		}
		if !contains(&scanner{data: filled}, &scanner{data: doc}) {
			t.Fatalf("%s lost something: %s", doc, filled)
		}
		if bytes.Contains(schema, []byte(`$`)) || bytes.Contains(schema, []byte(`\`)) || len(schema) > 2000 || repeats(schema) {
			return // perhaps a reference, and then perhaps a default in itself
		}
		if again := s.applyDefaults(bytes.Clone(filled)); !bytes.Equal(again, filled) {
			t.Fatalf("%s becomes %s, and that %s", doc, filled, again)
		}
		if bytes.Contains(schema, []byte("patternProperties")) {
			return
		}
		want := withDefaults([]any{decodedJSON(t, schema)}, decodedJSON(t, doc))
		if !reflect.DeepEqual(decodedJSON(t, filled), want) {
			t.Fatalf("%s becomes %s, not %v", doc, filled, want)
		}
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if fits := s.Validate(filled) == nil; fits != (s.Validate(text) == nil) {
			t.Fatalf("%s fits: %v, but %s does not agree", filled, fits, text)
		}
	})
}

func decodedJSON(t *testing.T, text []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(text, []byte("\uFEFF"))))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// withDefaults is a slow reading of schemas without references and patterns.
func withDefaults(schemas []any, doc any) any {
	var all []map[string]any // with those of allOf
	for i := 0; i < len(schemas); i++ {
		if m, ok := schemas[i].(map[string]any); ok {
			all = append(all, m)
			more, _ := m["allOf"].([]any)
			schemas = append(slices.Clip(schemas), more...)
		}
	}
	switch doc := doc.(type) {
	case []any:
		for i := range doc {
			var items []any
			for _, s := range all {
				prefix, _ := s["prefixItems"].([]any)
				if i < len(prefix) {
					items = append(items, prefix[i])
				} else if s["items"] != nil {
					items = append(items, s["items"])
				}
			}
			doc[i] = withDefaults(items, doc[i])
		}
	case map[string]any:
		for _, s := range all {
			properties, _ := s["properties"].(map[string]any)
			for name, property := range properties {
				if _, there := doc[name]; !there {
					if value, ok := defaultOf(property); ok {
						doc[name] = value
					}
				}
			}
		}
		for name, value := range doc {
			var members []any
			for _, s := range all {
				properties, _ := s["properties"].(map[string]any)
				if properties[name] != nil {
					members = append(members, properties[name])
				} else if s["additionalProperties"] != nil {
					members = append(members, s["additionalProperties"])
				}
			}
			doc[name] = withDefaults(members, value)
		}
	}
	return doc
}

// defaultOf returns a copy of a property's default, its own or the first of
// those in allOf.
func defaultOf(property any) (value any, ok bool) {
	for schemas := []any{property}; len(schemas) > 0; schemas = schemas[1:] {
		m, _ := schemas[0].(map[string]any)
		if known, there := m["default"]; there {
			text, _ := json.Marshal(known)
			d := json.NewDecoder(bytes.NewReader(text))
			d.UseNumber()
			ok = d.Decode(&value) == nil
			return value, ok
		}
		more, _ := m["allOf"].([]any)
		schemas = append(slices.Clip(schemas), more...)
	}
	return nil, false
}

// contains reports whether all of a document is in another one, in its order.
func contains(all, some *scanner) bool {
	switch c := some.peek(); {
	case all.peek() != c:
		return false
	case c == '{':
		all.open('{')
		some.open('{')
		n := 0
		for m := 0; some.more('}', m); m++ {
			name := bytes.Clone(some.key())
			for {
				if !all.more('}', n) {
					return false
				}
				n++
				if bytes.Equal(all.key(), name) {
					break
				}
				all.skip()
			}
			if !contains(all, some) {
				return false
			}
		}
		for ; all.more('}', n); n++ {
			all.key()
			all.skip()
		}
		return true
	case c == '[':
		all.open('[')
		some.open('[')
		for n := 0; ; n++ {
			more := some.more(']', n)
			if all.more(']', n) != more {
				return false
			}
			if !more {
				return true
			}
			if !contains(all, some) {
				return false
			}
		}
	}
	return bytes.Equal(all.skip(), some.skip())
}

// TestResultsFitTheSchemaAsSent: what a tool of any result type sends fits the
// schema that the client has, which knows no null. Only a nil pointer in an
// array or map, or where a tag requires it, has no other form.
func TestResultsFitTheSchemaAsSent(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	leaves := append(slices.Clone(leafTypes), textTypes...)
	results := 0
	for range 1000 {
		typ := generatedStruct(r, leaves, 3)
		if unheard(typ, true, make(map[unheardKey]bool)) != nil {
			continue
		}
		sent, err := schemaForType(typ)
		if err != nil {
			t.Fatal(err)
		}
		s := mustCompile(t, string(sent), nil)
		for range 3 {
			v := reflect.New(typ)
			randomValue(r, v.Elem(), 0)
			if holdsNil(v.Elem(), false) {
				continue
			}
			result, err := toolResultOf(v.Interface())
			if err != nil {
				continue // as encoding/json says
			}
			if results++; s.Validate(result.structured) != nil {
				t.Fatalf("%v: %v\n%s\n%s", typ, s.Validate(result.structured), result.structured, sent)
			}
		}
	}
	if results < 1000 {
		t.Errorf("only %d results", results)
	}
}

// holdsNil reports whether an array, a map or a required field within v holds
// a nil pointer; element: v is in one.
func holdsNil(v reflect.Value, element bool) bool {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return element
		}
		if e := v.Elem(); element && slices.Contains([]reflect.Kind{reflect.Slice, reflect.Map, reflect.Interface}, e.Kind()) && e.IsNil() {
			return true // written just as a nil pointer
		}
		return holdsNil(v.Elem(), element)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if holdsNil(v.Index(i), true) {
				return true
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if holdsNil(v.MapIndex(key), true) {
				return true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.IsExported() && f.Tag.Get("json") != "-" && holdsNil(v.Field(i), strings.Contains(f.Tag.Get("jsonschema"), "required=true")) {
				return true
			}
		}
	}
	return false
}
