package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/big"
	"math/rand"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

type (
	plainText   string
	upperText   struct{ s string }
	ownJSON     struct{ n int }
	knowsItems  struct{ n int }
	intKeys     map[int8]bool
	textKey     struct{ a, b byte }
	page[T any] struct {
		Items []T      `json:"items"`
		Next  *page[T] `json:"next,omitempty"`
	}
	inner struct {
		X int `json:"x"`
	}
	Base struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	}
	Other struct {
		Name  string `json:"Name"`
		Extra bool
	}
	node struct {
		Kids []node
		Next *node
	}
	left  struct{ R map[string]right }
	right struct{ L *left }
	tree  map[string]tree
)

func (u upperText) MarshalText() ([]byte, error)  { return []byte(strings.ToUpper(u.s)), nil }
func (k textKey) MarshalText() ([]byte, error)    { return []byte{k.a, k.b}, nil }
func (o ownJSON) MarshalJSON() ([]byte, error)    { return json.Marshal([]int{o.n}) }
func (k knowsItems) MarshalJSON() ([]byte, error) { return json.Marshal([]int{k.n}) }
func (k knowsItems) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"type": "array", "items": {}}`)
}

func TestInferredSchemas(t *testing.T) {
	shows(t, "schema.dialect.prefer")
	const closed = `,"additionalProperties":false}`
	tests := []struct {
		v    any
		want string
	}{
		{struct{}{}, `{"type":"object","properties":{}` + closed},
		{&struct{}{}, `{"type":"object","properties":{}` + closed},
		{true, `{"type":"boolean"}`},
		{int(1), `{"type":"integer"}`},
		{int8(1), `{"type":"integer","minimum":-128,"maximum":127}`},
		{int32(1), `{"type":"integer","minimum":-2147483648,"maximum":2147483647}`},
		{uint16(1), `{"type":"integer","minimum":0,"maximum":65535}`},
		{uint64(1), `{"type":"integer","minimum":0}`},
		{1.5, `{"type":"number"}`},
		{plainText(""), `{"type":"string"}`},
		{[]string{}, `{"type":"array","items":{"type":"string"}}`},
		{[4]byte{}, `{"type":"array","items":{"type":"integer","minimum":0,"maximum":255},"minItems":4,"maxItems":4}`},
		{[]byte{}, `{"type":"string","contentEncoding":"base64"}`},
		{map[string]any{}, `{"type":"object","additionalProperties":{},"properties":{}}`},
		{map[textKey]int{}, `{"type":"object","additionalProperties":{"type":"integer"},"properties":{}}`},
		{intKeys{}, `{"type":"object","propertyNames":{"pattern":"^-?(0|[1-9][0-9]*)$"},"additionalProperties":{"type":"boolean"},"properties":{}}`},
		{json.RawMessage{}, `{}`},
		{json.Number(""), `{"type":"number"}`},
		{time.Time{}, `{"type":"string","format":"date-time"}`},
		{time.Second, `{"type":"integer","description":"nanoseconds"}`},
		{struct{ time.Time }{}, `{}`},
		{upperText{}, `{"type":"string"}`},
		{ownJSON{}, `{}`},
		{knowsItems{}, `{"type":"array","items":{}}`},
		{big.Int{}, `{"type":"integer"}`},
		{&big.Float{}, `{"type":"string"}`},
		{netip.Addr{}, `{"type":"string"}`},
		{url.URL{}, `{"type":"object","description":"a URL split in its parts, as Go's net/url has them","properties":{}}`},
		{struct {
			A int `json:"a"`
			B int `json:"b,omitempty"`
			C int `json:"c,omitzero"`
			D *int
			E int    `json:"-"`
			F int    `json:"-,"`
			G int    `json:"bad\"name"`
			H int    `json:",string"`
			I *bool  `json:"i,string"`
			J []byte `json:",string"`
			k int
		}{}, `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"},"D":{"type":"integer"},` +
			`"-":{"type":"integer"},"G":{"type":"integer"},"H":{"type":"string","pattern":"^-?(0|[1-9][0-9]*)$"},"i":{"type":"string","enum":["true","false"]},` +
			`"J":{"type":"string","contentEncoding":"base64"}},"required":["a","-","G","H","J"]` + closed},
		{struct {
			Base
			*inner
			Extra int
			Other
		}{}, `{"type":"object","properties":{"id":{"type":"string"},"name":{"type":"string"},"x":{"type":"integer"},"Extra":{"type":"integer"},` +
			`"Name":{"type":"string"}},"required":["id","name","Extra","Name"]` + closed},
		{struct {
			inner `json:"named"`
			Base  `json:"base"`
		}{}, `{"type":"object","properties":{"named":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false},"base":{"type":"object","properties":{"id":{"type":"string"},"name":{"type":"string"}},"required":["id","name"],` +
			`"additionalProperties":false}},"required":["named","base"]` + closed},
		{struct {
			A, B inner
			C    []*inner
		}{}, `{"type":"object","properties":{"A":{"$ref":"#/$defs/inner"},"B":{"$ref":"#/$defs/inner"},"C":{"type":"array","items":{"$ref":"#/$defs/inner"}}},` +
			`"required":["A","B","C"],"additionalProperties":false,"$defs":{"inner":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]` + closed + `}}`},
		{node{}, `{"type":"object","properties":{"Kids":{"type":"array","items":{"$ref":"#"}},"Next":{"$ref":"#"}},"required":["Kids"]` + closed},
		{left{}, `{"type":"object","properties":{"R":{"type":"object","additionalProperties":{"type":"object","properties":{"L":{"$ref":"#"}}` + closed + `}},"required":["R"]` + closed},
		{tree{}, `{"type":"object","additionalProperties":{"$ref":"#"},"properties":{}}`},
		{[]page[Base]{}, `{"type":"array","items":{"$ref":"#/$defs/page_mcp.Base"},"$defs":{"page_mcp.Base":{"type":"object","properties":{` +
			`"items":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"name":{"type":"string"}},"required":["id","name"],"additionalProperties":false}},` +
			`"next":{"$ref":"#/$defs/page_mcp.Base"}},"required":["items"]` + closed + `}}`},
	}
	for _, test := range tests {
		typ := reflect.TypeOf(test.v)
		got, err := schemaForType(typ)
		if err != nil || string(got) != test.want {
			t.Errorf("schema of %v:\n got %s, %v\nwant %s", typ, got, err, test.want)
		}
	}
}

func TestTagKeywords(t *testing.T) {
	type fields struct {
		A string         `json:"a" jsonschema:"a name, at most 10 bytes,maxLength=10,pattern=^[a-z]{1,3}$,format=email,default=x"`
		B int            `json:"b" jsonschema:"minimum=1,maximum=9.5,multipleOf=2,enum=2|4,default=4,x-mcp-header=Region"`
		C []string       `json:"c" jsonschema:"some tags, comma separated,minItems=1,uniqueItems=true,enum=a|b,default=[\"a\"]"`
		D *inner         `json:"d" jsonschema:"nested,required=true,deprecated=true"`
		E any            `json:"e" jsonschema:"type=string,minLength=2,const=abc"`
		F any            `json:"f,omitempty" jsonschema:"examples=1|x|{},title=Eff"`
		G map[string]int `json:"g" jsonschema:"required=p|q,minProperties=1,dependentRequired={\"p\":[\"q\"]}"`
		H []int          `json:"h" jsonschema:"contains={\"minimum\":3},minContains=2,minimum=1"`
		I time.Duration  `json:"i" jsonschema:"time to wait"`
		J int            `json:"j" jsonschema:"required=true,default=1"`
	}
	got, err := SchemaFor[fields]()
	want := `{"type":"object","properties":{` +
		`"a":{"type":"string","description":"a name, at most 10 bytes","maxLength":10,"pattern":"^[a-z]{1,3}$","format":"email","default":"x"},` +
		`"b":{"type":"integer","minimum":1,"maximum":9.5,"multipleOf":2,"enum":[2,4],"default":4,"x-mcp-header":"Region"},` +
		`"c":{"type":"array","items":{"type":"string","enum":["a","b"]},"description":"some tags, comma separated","minItems":1,"uniqueItems":true,"default":["a"]},` +
		`"d":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false,"description":"nested","deprecated":true},` +
		`"e":{"type":"string","minLength":2,"const":"abc"},` +
		`"f":{"examples":[1,"x",{}],"title":"Eff"},` +
		`"g":{"type":"object","additionalProperties":{"type":"integer"},"required":["p","q"],"minProperties":1,"dependentRequired":{"p":["q"]}},` +
		`"h":{"type":"array","items":{"type":"integer","minimum":1},"contains":{"minimum":3},"minContains":2},` +
		`"i":{"type":"integer","description":"time to wait (nanoseconds)"},"j":{"type":"integer","default":1}` +
		`},"required":["d","e","g","h","i","j"],"additionalProperties":false}`
	if err != nil || string(got) != want {
		t.Errorf(" got %s, %v\nwant %s", got, err, want)
	}
}

func TestWhatCannotBeInferredNamesTheField(t *testing.T) {
	type loop *loop
	tests := []struct {
		v    any
		want string
	}{
		{struct{ A struct{ B chan int } }{}, "field A.B: chan int has no JSON form"},
		{struct{ F func() }{}, "field F: func() has no JSON form"},
		{complex(1, 1), "complex128 has no JSON form"},
		{loop(nil), "has no JSON form"},
		{map[float64]int{}, "keys are not text"},
		{struct {
			A []struct {
				B int `jsonschema:"minimun=1"`
			}
		}{}, `field A.B: the jsonschema tag has the unknown keyword "minimun"`},
		{struct {
			A string `jsonschema:"x,minimum=1"`
		}{}, "field A: the jsonschema tag's minimum=1 does not fit string"},
		{struct {
			A int `jsonschema:"minimum=low"`
		}{}, "field A: the jsonschema tag's minimum=low does not fit integer"},
		{struct {
			A int `jsonschema:"default=1.5"`
		}{}, "default=1.5 does not fit integer"},
		{struct {
			A bool `jsonschema:"enum=true|yes"`
		}{}, "enum=true|yes does not fit boolean"},
		{struct {
			A string `jsonschema:"pattern=("`
		}{}, "the jsonschema tag is wrong: /pattern: the pattern"},
		{struct {
			A string `jsonschema:"maxLength=-1"`
		}{}, "maxLength=-1 does not fit"},
		{struct {
			A string `jsonschema:"type=integer"`
		}{}, "type=integer does not fit string"},
		{struct {
			A float64 `jsonschema:"x-mcp-header=A"`
		}{}, "x-mcp-header=A does not fit number"},
		{struct {
			A uint8 `jsonschema:"default=300"`
		}{}, "field A: the jsonschema tag's value 300 does not fit: must be at most 255"},
		{struct {
			A []string `jsonschema:"enum=a|b,default=[\"c\"]"`
		}{}, "does not fit: /0: must be one of"},
		{struct {
			A []int `jsonschema:"contains={\"type\":1}"`
		}{}, "field A: the jsonschema tag is wrong: /contains/type: must be a type"},
		{struct {
			A int `jsonschema:"multipleOf=0"`
		}{}, "the jsonschema tag is wrong: /multipleOf: must be greater than 0"},
	}
	for _, test := range tests {
		_, err := schemaForType(reflect.TypeOf(test.v))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%T: got %v, want %s", test.v, err, test.want)
		}
	}
}

func TestRepeatedTypesStaySmall(t *testing.T) {
	type t0 struct{ A, B int }
	type t1 struct{ A, B t0 }
	type t2 struct{ A, B t1 }
	type t3 []struct{ A, B t2 }
	type t4 []struct{ A, B t3 }
	type t5 struct{ A, B t4 }
	schema, err := SchemaFor[t5]()
	if err != nil || len(schema) > 1500 {
		t.Errorf("%d bytes, %v: %s", len(schema), err, schema)
	}
}

// suiteFolder is the official JSON-Schema-Test-Suite, where it is at hand.
const suiteFolder = "../shared/suites/json-schema/"

type suiteGroup struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

// suiteDocuments are the schemas that the suite expects to be on a server.
func suiteDocuments(t *testing.T, folder string) map[string]json.RawMessage {
	documents := map[string]json.RawMessage{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(folder, path)
		documents["http://localhost:1234/"+filepath.ToSlash(name)] = text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return documents
}

// runSuite runs the files of a folder and returns how many cases passed and
// which failed.
func runSuite(t *testing.T, folder, defaultDialect string, opts *SchemaOptions) (passed int, failed []string) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases in %s: %v", folder, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var groups []suiteGroup
		if err := json.Unmarshal(text, &groups); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, g := range groups {
			if defaultDialect != "" && g.Schema[0] == '{' && !strings.Contains(string(g.Schema), `"$schema"`) {
				rest := strings.TrimSpace(string(g.Schema[1:]))
				if rest != "}" {
					rest = "," + rest
				}
				g.Schema = json.RawMessage(`{"$schema":"` + defaultDialect + `"` + rest)
			}
			schema, err := CompileSchema(g.Schema, opts)
			for _, test := range g.Tests {
				name := filepath.Base(file) + ": " + g.Description + ": " + test.Description
				if err != nil {
					failed = append(failed, name+": "+err.Error())
					continue
				}
				if got := schema.Validate(test.Data); (got == nil) != test.Valid {
					failed = append(failed, fmt.Sprintf("%s: valid %v, got %v", name, test.Valid, got))
					continue
				}
				passed++
			}
		}
	}
	return passed, failed
}

func TestOfficialSuite(t *testing.T) {
	shows(t, "schema.dialect.default", "schema.dialect.declared")
	if _, err := os.Stat(suiteFolder); err != nil {
		t.Skip("the official suite is not here; the cases of testdata/schema run instead")
	}
	documents := suiteDocuments(t, suiteFolder+"remotes")
	for folder, dialect := range map[string]string{"draft2020-12": "", "draft7": "http://json-schema.org/draft-07/schema#"} {
		passed, failed := runSuite(t, suiteFolder+folder, dialect, &SchemaOptions{Documents: documents})
		t.Logf("%s: %d passed, %d failed", folder, passed, len(failed))
		for _, f := range failed {
			t.Error(folder + "/" + f)
		}
	}
}

// What the optional files of the suite ask for and CompileSchema does not do:
// how many cases of which file, in both drafts.
var optionalGaps = map[string]int{
	"draft2020-12/optional/cross-draft.json":             1, // 2019-09 is not a dialect we know
	"draft7/optional/cross-draft.json":                   2,
	"draft2020-12/optional/format/ecmascript-regex.json": 2, // RE2 has no look-behind and no back-references
	"draft7/optional/format/ecmascript-regex.json":       2,
}

func TestOptionalCasesOfTheOfficialSuite(t *testing.T) {
	if _, err := os.Stat(suiteFolder); err != nil {
		t.Skip("the official suite is not here; the cases of testdata/schema run instead")
	}
	documents := suiteDocuments(t, suiteFolder+"remotes")
	gaps := make(map[string]int)
	for folder, dialect := range map[string]string{"draft2020-12": "", "draft7": "http://json-schema.org/draft-07/schema#"} {
		for sub, assert := range map[string]bool{"/optional": folder == "draft7", "/optional/format": true} {
			passed, failed := runSuite(t, suiteFolder+folder+sub, dialect, &SchemaOptions{Documents: documents, AssertFormat: assert})
			t.Logf("%s: %d passed, %d failed", folder+sub, passed, len(failed))
			for _, f := range failed {
				file, _, _ := strings.Cut(f, ":")
				if gaps[folder+sub+"/"+file]++; optionalGaps[folder+sub+"/"+file] == 0 {
					t.Error(folder + sub + "/" + f)
				}
			}
		}
	}
	if !maps.Equal(gaps, optionalGaps) {
		t.Errorf("cases that fail: %v, and should be %v", gaps, optionalGaps)
	}
}

func TestOwnCases(t *testing.T) {
	shows(t, "schema.dialect.default", "schema.dialect.declared", "schema.dialect.explicit")
	passed, failed := runSuite(t, "testdata/schema", "", nil)
	if passed < 200 {
		t.Errorf("only %d cases passed", passed)
	}
	for _, f := range failed {
		t.Error(f)
	}
}

func mustCompile(t testing.TB, schema string, opts *SchemaOptions) *Schema {
	t.Helper()
	s, err := CompileSchema(json.RawMessage(schema), opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestValidationErrorsNamePathAndRule(t *testing.T) {
	const person = `{"type":"object","properties":{
		"name":{"type":"string","minLength":2,"maxLength":5,"pattern":"^[A-Z]"},"age":{"type":"integer","minimum":0,"exclusiveMaximum":150},
		"tags":{"type":"array","items":{"enum":["a","b",1]},"minItems":1,"maxItems":3,"uniqueItems":true},
		"pet":{"anyOf":[{"type":"object","properties":{"legs":{"type":"integer"}},"required":["legs"]},{"type":"null"}]},
		"id":{"oneOf":[{"type":"string","minLength":3},{"type":"integer","multipleOf":5}]},
		"a/b":{"const":{"x":1}}},"required":["name"],"additionalProperties":false}`
	tests := []struct{ schema, doc, want string }{
		{person, `{"age":-1,"nickname":1}`, `/age: must be at least 0; /nickname: is not a known property; /name: is required`},
		{person, `{"name":"a","age":1.5}`, `/name: must be at least 2 characters long; /name: must match the pattern ^[A-Z]; /age: must be an integer, got a number`},
		{person, `{"name":"ABCDEF","age":150}`, `/name: must be at most 5 characters long; /age: must be less than 150`},
		{person, `{"name":7}`, `/name: must be a string, got a number`},
		{person, `[]`, `must be an object, got an array`},
		{person, `{"name":"Al","tags":["a","c","a",1]}`, `/tags/1: must be one of "a", "b", 1; /tags: must have at most 3 items; /tags/2: is a duplicate; the items must be unique`},
		{person, `{"name":"Al","tags":[]}`, `/tags: must have at least 1 item`},
		{person, `{"name":"Al","pet":{"legs":"four"}}`, `/pet/legs: must be an integer, got a string`},
		{person, `{"name":"Al","pet":{}}`, `/pet/legs: is required`},
		{person, `{"name":"Al","pet":1}`, `/pet: must fit one of the alternatives: /pet: must be an object, got a number, or /pet: must be null, got a number`},
		{person, `{"name":"Al","id":"x"}`, `/id: must be at least 3 characters long`},
		{person, `{"name":"Al","id":3}`, `/id: must be a multiple of 5`},
		{`{"oneOf":[{"properties":{"t":{"const":"a"},"r":{"type":"number"}},"required":["t","r"]},{"properties":{"t":{"const":"b"},"w":{"type":"number"}},"required":["t"]}]}`,
			`{"t":"a","r":"x"}`, `/r: must be a number, got a string`},
		{person, `{"name":"Al","a/b":{"x":2}}`, `/a~1b: must be {"x":1}`},
		{person, `{"name":"Al","name":"Bo"}`, `/name: is given twice`},
		{person, `{"name":"Al",}`, `is not JSON: string expected at offset 13`},
		{person, `{"name":"Al"} x`, `is not JSON: text after the value at offset 14`},
		{person, ``, `is not JSON: unexpected end at offset 0`},
		{`{"propertyNames":{"maxLength":2}}`, `{"abc":1}`, `/abc: its name must be at most 2 characters long`},
		{`{"patternProperties":{"^x":{"type":"boolean"}}}`, `{"x1":1}`, `/x1: must be a boolean, got a number`},
		{`{"type":["integer","null"]}`, `"x"`, `must be null or an integer, got a string`},
		{`{"not":{"type":"string"}}`, `"x"`, `must not be what the schema excludes (not)`},
		{`{"oneOf":[true,{"type":"string"}]}`, `"x"`, `must fit exactly one of the alternatives, but fits several (oneOf)`},
		{`{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}`, `{"a":1}`, `/b: is required`},
		{`{"dependentRequired":{"card":["address"]}}`, `{"card":1}`, `/address: is required beside card`},
		{`{"minProperties":2}`, `{"a":1}`, `must have at least 2 properties`},
		{`{"contains":{"type":"string"},"minContains":2}`, `["a",1]`, `must have at least 2 items of the kind asked for (contains)`},
		{`{"contains":{"type":"string"},"maxContains":1}`, `["a","b"]`, `must have at most 1 item of the kind asked for (contains)`},
		{`{"properties":{"a":{}},"unevaluatedProperties":false}`, `{"a":1,"b":2}`, `/b: is not a known property`},
		{`{"prefixItems":[{}],"unevaluatedItems":false}`, `[1,2]`, `/1: is not allowed`},
		{`{"additionalProperties":{"items":{"type":"null"}}}`, `{"a":[[],null,1]}`, `/a/0: must be null, got an array; /a/2: must be null, got a number`},
		{`{}`, `{"a":`, `is not JSON: unexpected end at offset 5`},
	}
	for _, test := range tests {
		err := mustCompile(t, test.schema, nil).Validate([]byte(test.doc))
		if err == nil || err.Error() != test.want {
			t.Errorf("%s:\n got %v\nwant %s", test.doc, err, test.want)
		}
	}
}

func TestValidationReportsAtMostTenProblems(t *testing.T) {
	err := mustCompile(t, `{"items":{"type":"string"}}`, nil).Validate([]byte("[" + strings.Repeat("1,", 99) + "1]"))
	if err == nil || strings.Count(err.Error(), ";") != maxProblems-1 {
		t.Error(err)
	}
}

func TestDuplicateMembersAreRefusedWhereverTheSchemaLooks(t *testing.T) {
	many := "{"
	for i := range 300 {
		many += fmt.Sprintf(`"m%d":{"m%d":1},`, i, i)
	}
	tests := []struct {
		schema, doc string
		want        string
	}{
		{`{"type":"object"}`, `{"a":1,"b":{"a":1},"\u0061":2}`, "/a: is given twice"},
		{`{"type":"object"}`, `{"a":1,"b":2}`, ""},
		{`{"properties":{"a":{"properties":{"b":{}}}}}`, `{"a":{"b":1,"b":2}}`, "/a/b: is given twice"},
		{`{"additionalProperties":{"type":"object"}}`, `{"x":{"y":1,"z":2},"w":{"y":1,"y":2}}`, "/w/y: is given twice"},
		{`{"anyOf":[{"properties":{"a":{"type":"string"}}},true]}`, `{"a":1,"a":2}`, ""}, // nothing looked at the second
		{`{"anyOf":[{"properties":{"a":{}}},{"properties":{"a":{}}}],"allOf":[{"properties":{"b":{}}}]}`, `{"a":1,"b":2}`, ""},
		{`{"additionalProperties":{"type":"object"}}`, many + `"m7":{}}`, "/m7: is given twice"},
		{`{"additionalProperties":{"type":"object"}}`, many + `"m":{}}`, ""},
	}
	for _, test := range tests {
		err := mustCompile(t, test.schema, nil).Validate([]byte(test.doc))
		if (err == nil) != (test.want == "") || err != nil && err.Error() != test.want {
			t.Errorf("%.60s: got %v, want %q", test.doc, err, test.want)
		}
	}
}

func TestSchemasThatDoNotCompile(t *testing.T) {
	shows(t, "schema.dialect.unsupported", "schema.ref.unresolved", "schema.bounds")
	deep := func(open, end string, n int) string { return strings.Repeat(open, n) + "true" + strings.Repeat(end, n) }
	many := `{"allOf":[true` + strings.Repeat(",{}", maxSubschemas) + `]}`
	tests := []struct{ schema, want string }{
		{``, "unexpected end"},
		{`{"type":"string"`, "',' or '}' expected"},
		{`5`, "a schema must be an object or a boolean"},
		{`null`, "a schema must be an object or a boolean"},
		{`{"$schema":"https://json-schema.org/draft/2019-09/schema"}`, `the dialect "https://json-schema.org/draft/2019-09/schema" is unsupported`},
		{`{"$schema":"http://json-schema.org/draft-04/schema#"}`, "is unsupported: only 2020-12 and draft-07 are known"},
		{`{"$schema":"http://example.com/mine"}`, "is unsupported"},
		{`{"properties":{"a":{"type":"text"}}}`, `/properties/a/type: "text" is not a type`},
		{`{"type":["string","string"]}`, "/type: must be a type or an array of different types"},
		{`{"items":{"minimum":"1"}}`, "/items/minimum: must be of type number"},
		{`{"multipleOf":0}`, "/multipleOf: must be greater than 0"},
		{`{"multipleOf":-1}`, "/multipleOf: must be greater than 0"},
		{`{"minLength":-1}`, "/minLength: must be an integer that is not negative"},
		{`{"minLength":1.5}`, "/minLength: must be an integer that is not negative"},
		{`{"required":["a","a"]}`, `/required: lists "a" twice`},
		{`{"required":[1]}`, "/required: must be an array of strings"},
		{`{"anyOf":[]}`, "/anyOf: must not be empty"},
		{`{"anyOf":{}}`, "/anyOf: must be an array"},
		{`{"properties":[]}`, "/properties: must be an object"},
		{`{"items":[{}]}`, "/items: a schema must be an object or a boolean"},
		{`{"type":"string","type":"object"}`, "type is given twice"},
		{`{"$id":"http://example.com/a#b"}`, "must not have a fragment"},
		{`{"$defs":{"a":{"$anchor":"1x"}}}`, `the anchor "1x" must be a word`},
		{`{"$defs":{"a":{"$anchor":"x"},"b":{"$anchor":"x"}}}`, `the anchor "x" is given twice`},
		{`{"$defs":{"a":{"$id":"http://e.com/x"},"b":{"$id":"http://e.com/x"}}}`, "is the name of two schemas"},
		{`{"properties":{"a":{"$ref":"#/$defs/b"}}}`, `/properties/a: cannot resolve the reference "#/$defs/b": there is nothing`},
		{`{"$ref":"#nowhere"}`, "there is no such anchor"},
		{`{"$ref":"#/%zz"}`, "is not a URI reference"},
		{`{"$ref":"http://example.com/s.json"}`, `"http://example.com/s.json" is refused: no such document was supplied, and none is fetched`},
		{`{"$ref":"file:///etc/passwd"}`, "is refused"},
		{`{"$ref":"other.json"}`, "is refused"},
		{`{"pattern":"(?=a)b"}`, "/pattern: the pattern \"(?=a)b\" cannot be used: invalid or unsupported Perl syntax: `(?=`"},
		{`{"pattern":"(a)\\1"}`, "invalid escape sequence: `\\1`"},
		{`{"pattern":"\\a"}`, "invalid escape `\\a`"},
		{`{"pattern":"a{1001}"}`, "invalid repeat count: `{1001}`"},
		{`{"patternProperties":{"[":true}}`, "/patternProperties: the pattern \"[\" cannot be used: missing closing ]"},
		{`{"go:nil":true,"type":"array","go:nil":true}`, "is given twice"},
		{deep(`{"not":`, "}", maxSchemaDepth+1), "nests deeper than 500 schemas"},
		{many, "more than 20000 subschemas"},
	}
	for _, test := range tests {
		_, err := CompileSchema(json.RawMessage(test.schema), nil)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.80s:\n got %v\nwant %s", test.schema, err, test.want)
		}
	}
}

func TestNothingIsFetched(t *testing.T) {
	shows(t, "schema.ref.no-network", "schema.ref.optin-default-off")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	asked := make(chan bool, 1)
	go func() {
		if conn, err := l.Accept(); err == nil {
			conn.Close()
			asked <- true
		}
		close(asked)
	}()
	uri := "http://" + l.Addr().String() + "/schema.json"
	for _, schema := range []string{`{"$ref":"` + uri + `"}`, `{"$schema":"` + uri + `"}`, `{"$dynamicRef":"` + uri + `#x"}`, `{"$id":"` + uri + `","$ref":"b"}`} {
		if _, err := CompileSchema(json.RawMessage(schema), nil); err == nil {
			t.Errorf("%s compiles", schema)
		}
	}
	s := mustCompile(t, `{"$ref":"`+uri+`#/$defs/a"}`, &SchemaOptions{Documents: map[string]json.RawMessage{uri: json.RawMessage(`{"$defs":{"a":{"type":"null"}}}`)}})
	if s.Validate([]byte("null")) != nil || s.Validate([]byte("1")) == nil {
		t.Error("a document that was supplied is not used")
	}
	l.Close()
	if <-asked {
		t.Error("a reference was fetched")
	}
}

func TestDocumentsMayNameEachOther(t *testing.T) {
	opts := &SchemaOptions{Documents: map[string]json.RawMessage{
		"http://example.com/a.json":     json.RawMessage(`{"$id":"http://example.com/dir/a.json","properties":{"b":{"$ref":"b.json"}}}`),
		"http://example.com/dir/b.json": json.RawMessage(`{"properties":{"a":{"$ref":"../a.json"}},"required":["n"]}`),
		"http://example.com/bad.json":   json.RawMessage(`{"properties":{"a":{"type":"no"}}}`),
		"http://example.com/meta":       json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","$vocabulary":{"https://example.com/units":true}}`),
	}}
	s := mustCompile(t, `{"$ref":"http://example.com/a.json"}`, opts)
	if err := s.Validate([]byte(`{"b":{"n":1,"a":{"b":{}}}}`)); err == nil || err.Error() != "/b/a/b/n: is required" {
		t.Error(err)
	}
	_, err := CompileSchema(json.RawMessage(`{"$ref":"http://example.com/bad.json"}`), opts)
	if err == nil || !strings.Contains(err.Error(), `http://example.com/bad.json/properties/a/type: "no" is not a type`) {
		t.Error(err)
	}
	_, err = CompileSchema(json.RawMessage(`{"$schema":"http://example.com/meta"}`), opts)
	if err == nil || !strings.Contains(err.Error(), `the vocabulary "https://example.com/units" is unsupported`) {
		t.Error(err)
	}
}

func TestHostileInputEndsInAnError(t *testing.T) {
	shows(t, "schema.bounds")
	branch := func(n int, body string) string { return strings.Repeat(body+",", n-1) + body }
	deepDoc := strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000)
	tests := []struct{ name, schema, doc, want string }{
		{"endless reference", `{"$ref":"#"}`, `1`, "refers to itself without end"},
		{"endless through two", `{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#"}]}}}`, `1`, "refers to itself without end"},
		{"branches at each level", `{"anyOf":[{"properties":{"a":{"$ref":"#"}},"required":["x"]},{"properties":{"a":{"$ref":"#"}},"required":["y"]}]}`,
			strings.Repeat(`{"a":`, 40) + "{}" + strings.Repeat("}", 40), "takes too much work"},
		{"nested branches", `{"$defs":{` +
			func() string {
				var defs []string
				for i := range 12 {
					defs = append(defs, fmt.Sprintf(`"d%d":{"anyOf":[%s]}`, i, branch(8, fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1))))
				}
				return strings.Join(defs, ",")
			}() + `,"d12":{"type":"null"}},"$ref":"#/$defs/d0"}`, `1`, "takes too much work"},
		{"deep document", `{"properties":{"a":{"anyOf":[{"$ref":"#"}]}}}`, deepDoc, "nested too deep to check"},
		{"deep unique items", `{"uniqueItems":true}`, "[" + strings.Repeat("[", 500) + strings.Repeat("]", 500) + ",1]", "nested too deep"},
		{"too deep for JSON", `{}`, strings.Repeat("[", 20000), "nesting deeper"},
		{"a long number", `{"multipleOf":0.3}`, strings.Repeat("7", 1<<20), "must be a multiple"},
		{"a vast exponent", `{"multipleOf":3}`, `1e999999999`, "must be a multiple"},
		{"a vast negative exponent", `{"type":"integer"}`, `1e-99999999999999999999`, "must be an integer"},
		{"a large branch many times", `{"allOf":[` + branch(2000, `{"properties":{"a":{"type":"array"}}}`) + `]}`,
			`{"a":[` + strings.Repeat("1,", 100000) + `1]}`, "takes too much work"},
		{"a pattern on a long string many times", `{"allOf":[` + branch(500, `{"pattern":"(a|b)*c$"}`) + `]}`, `"` + strings.Repeat("ab", 50000) + `c"`, "takes too much work"},
	}
	for _, test := range tests {
		s, err := CompileSchema(json.RawMessage(test.schema), nil)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		start := time.Now()
		err = s.Validate([]byte(test.doc))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %.200v, want %s", test.name, err, test.want)
		}
		d := time.Since(start)
		if t.Logf("%s: %v", test.name, d); d > 30*time.Second { // far more than a slow machine needs
			t.Errorf("%s: took %v", test.name, d)
		}
	}
	if err := mustCompile(t, `{"properties":{"a":{"$ref":"#"}}}`, nil).Validate([]byte(strings.Repeat(`{"a":`, 3000) + "1" + strings.Repeat("}", 3000))); err != nil {
		t.Error("a document 3000 deep:", err)
	}
}

func TestManyReferencesCompileFast(t *testing.T) {
	var defs, refs []string
	for i := range 5000 {
		defs = append(defs, fmt.Sprintf(`"d%d":{"title":%q,"type":"integer"}`, i, strings.Repeat("x", 100)))
		refs = append(refs, fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i))
	}
	start := time.Now()
	s := mustCompile(t, `{"$defs":{`+strings.Join(defs, ",")+`},"allOf":[`+strings.Join(refs, ",")+`]}`, nil)
	if err := s.Validate([]byte(`1`)); err != nil {
		t.Error(err)
	}
	const depth = 4000
	deep := `{"x":` + strings.Repeat(`{"a":`, depth) + "{}" + strings.Repeat("}", depth) + `,"pad":"` + strings.Repeat("x", 1<<16) + `","$ref":"#/x` + strings.Repeat("/a", depth) + `"}`
	mustCompile(t, deep, nil)
	if d := time.Since(start); d > 30*time.Second { // far more than a slow machine needs
		t.Errorf("took %v", d)
	}
}

func TestLongNumbersAreExact(t *testing.T) {
	tests := []struct {
		schema, doc string
		ok          bool
	}{
		{`{"maximum":9007199254740992}`, `9007199254740993`, false},
		{`{"const":9007199254740993}`, `9007199254740993.0`, true},
		{`{"const":9007199254740993}`, `9007199254740992`, false},
		{`{"minimum":1e400}`, `1e401`, true},
		{`{"minimum":1e400}`, `9e399`, false},
		{`{"maximum":-1e-400}`, `-2e-400`, true},
		{`{"maximum":-1e-400}`, `0`, false},
		{`{"multipleOf":0.0001}`, `12391239123.0007`, true},
		{`{"multipleOf":0.0001}`, `12391239123.00075`, false},
		{`{"multipleOf":1e-8}`, `123456789012345678901234567890`, true},
		{`{"multipleOf":3}`, `3e100000000`, true},
		{`{"type":"integer"}`, `123.4500e2`, true},
		{`{"type":"integer"}`, `123.4500e1`, false},
		{`{"type":"integer"}`, `0e-5`, true},
		{`{"uniqueItems":true}`, `[9007199254740993,9007199254740992]`, true},
		{`{"uniqueItems":true}`, `[100,1e2]`, false},
	}
	for _, test := range tests {
		if err := mustCompile(t, test.schema, nil).Validate([]byte(test.doc)); (err == nil) != test.ok {
			t.Errorf("%s of %s: %v", test.doc, test.schema, err)
		}
	}
}

func TestFormatIsAnAnnotationUnlessAsserted(t *testing.T) {
	schema := `{"format":"date-time"}`
	if err := mustCompile(t, schema, nil).Validate([]byte(`"soon"`)); err != nil {
		t.Error(err)
	}
	strict := &SchemaOptions{AssertFormat: true}
	if err := mustCompile(t, schema, strict).Validate([]byte(`"soon"`)); err == nil || err.Error() != "must be a valid date-time" {
		t.Error(err)
	}
	good := map[string]string{"date-time": "2024-02-29T23:59:60.5Z", "date": "2024-02-29", "time": "08:30:06+01:00", "duration": "P1Y2M3DT4H", "email": "a.b+c@example.com",
		"idn-email": "é@example.com", "hostname": "a-b.example.com", "idn-hostname": "bücher.example", "ipv4": "127.0.0.1", "ipv6": "::1", "uri": "http://[::1]:80/a?b#c",
		"uri-reference": "../a?b", "iri": "http://é/ü", "iri-reference": "ü", "uri-template": "/{a}{?b*,c:3}", "json-pointer": "/a~1b/0",
		"relative-json-pointer": "1/a", "regex": "^a+$", "uuid": "2EB8AA08-aa98-11ea-b4aa-73b441d16380", "unheard-of": "x"}
	bad := map[string]string{"date-time": "2023-02-29T00:00:00Z", "date": "2023-2-1", "time": "24:00:00Z", "duration": "P1", "email": "a@", "idn-email": "@b", "hostname": "-a",
		"idn-hostname": "a..b", "ipv4": "127.0.0.01", "ipv6": "::1%eth0", "uri": "a/b", "uri-reference": "a b", "iri": "é", "iri-reference": "\\", "uri-template": "{a", "json-pointer": "a",
		"relative-json-pointer": "/a", "regex": "(", "uuid": "2eb8aa08aa9811eab4aa73b441d16380"}
	for format, text := range good {
		if err := mustCompile(t, `{"format":"`+format+`"}`, strict).Validate(appendString(nil, text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for format, text := range bad {
		if err := mustCompile(t, `{"format":"`+format+`"}`, strict).Validate(appendString(nil, text)); err == nil {
			t.Errorf("%s is taken for a %s", text, format)
		}
	}
}

func TestDefaultsFillAbsentMembersOnly(t *testing.T) {
	const schema = `{"type":"object","properties":{"n":{"type":"integer","default":5},"s":{"type":"string"},
		"in":{"$ref":"#/$defs/in"},"list":{"items":{"$ref":"#/$defs/in"}}},"$defs":{"in":{"properties":{"x":{"default":{"y":[1]}}}}}}`
	tests := []struct{ doc, want string }{
		{``, `{"n":5}`},
		{`{}`, `{"n":5}`},
		{` { } `, ` {"n":5 } `},
		{`{"n":0, "s":""}`, `{"n":0, "s":""}`},
		{`{"n":null}`, `{"n":null}`},
		{"{\n \"s\": \"a\"\n}", "{\n \"s\": \"a\",\"n\":5\n}"},
		{`{"\u006e":1}`, `{"\u006e":1}`},
		{`{"N":9007199254740993,"in":{ },"list":[{},{"x":1},3]}`, `{"N":9007199254740993,"in":{"x":{"y":[1]} },"list":[{"x":{"y":[1]}},{"x":1},3],"n":5}`},
		{`[]`, `[]`},
		{`{"s":`, `{"s":`},
	}
	s := mustCompile(t, schema, nil)
	for _, test := range tests {
		if got := s.applyDefaults([]byte(test.doc)); string(got) != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.doc, got, test.want)
		}
	}
	if got := mustCompile(t, `{}`, nil).applyDefaults(nil); string(got) != "{}" {
		t.Errorf("no defaults: %s", got)
	}
}

// everything has a field of each kind that inference knows.
type everything struct {
	Bool     bool              `json:"bool"`
	Int      int64             `json:"int"`
	Small    int8              `json:"small,omitempty"`
	Unsigned uint32            `json:"unsigned"`
	Float    float32           `json:"float"`
	Text     string            `json:"text" jsonschema:"any text"`
	Bytes    []byte            `json:"bytes"`
	Fixed    [2]int            `json:"fixed"`
	List     []string          `json:"list"`
	Map      map[string]uint8  `json:"map"`
	ByInt    map[int16]float64 `json:"byInt,omitzero"`
	ByText   map[textKey]*bool `json:"byText"`
	Pointer  *everything       `json:"pointer"`
	Pointers []*inner          `json:"pointers"`
	Any      any               `json:"any"`
	Raw      json.RawMessage   `json:"raw,omitempty"`
	Number   json.Number       `json:"number"`
	When     time.Time         `json:"when"`
	Pause    time.Duration     `json:"pause"`
	Upper    upperText         `json:"upper"`
	Own      ownJSON           `json:"own"`
	Items    knowsItems        `json:"items"`
	Quoted   int               `json:"quoted,string"`
	QuotedB  *bool             `json:"quotedB,string"`
	Addr     netip.Addr        `json:"addr"`
	Big      *big.Int          `json:"big"`
	URL      *url.URL          `json:"url"`
	Page     page[Base]        `json:"page"`
	*Base
	inner
}

// randomValue fills a value, with nil here and there.
func randomValue(r *rand.Rand, v reflect.Value, depth int) {
	switch v.Type() {
	case reflect.TypeFor[json.Number]():
		v.SetString(strconv.Itoa(r.Int()))
		return
	case reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(`{"a":[null]}`))
		return
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(r.Int63n(1<<33), r.Int63n(1e9))))
		return
	case reflect.TypeFor[netip.Addr](), reflect.TypeFor[net.IP](), reflect.TypeFor[upperText](), reflect.TypeFor[ownJSON](), reflect.TypeFor[knowsItems]():
		return
	case reflect.TypeFor[*big.Int]():
		v.Set(reflect.ValueOf(new(big.Int).Lsh(big.NewInt(r.Int63()), uint(r.Intn(90)))))
		return
	case reflect.TypeFor[*url.URL]():
		v.Set(reflect.ValueOf(&url.URL{Scheme: "http", Host: "example.com", User: url.User("me")}))
		return
	}
	if depth > 4 || r.Intn(5) == 0 {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(r.Intn(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(r.Uint64()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		v.SetUint(r.Uint64())
	case reflect.Float32, reflect.Float64:
		v.SetFloat(r.NormFloat64() * 1e10)
	case reflect.String:
		v.SetString(strings.Repeat("é<\u2028\x00\xff", r.Intn(3)))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		randomValue(r, v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.Intn(3), 3))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			randomValue(r, v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range r.Intn(3) {
			key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			randomValue(r, key, depth+1)
			randomValue(r, elem, depth+1)
			v.SetMapIndex(key, elem)
		}
	case reflect.Interface:
		v.Set(reflect.ValueOf([]any{true, 1.5, "x"}[r.Intn(3)]))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				randomValue(r, v.Field(i), depth+1)
			}
		}
	}
}

func TestWhatIsMarshalledFitsTheInferredSchema(t *testing.T) {
	shows(t, "schema.valid")
	for _, typ := range []reflect.Type{reflect.TypeFor[everything](), reflect.TypeFor[*node](), reflect.TypeFor[left](), reflect.TypeFor[tree](),
		reflect.TypeFor[map[string][]everything](), reflect.TypeFor[page[page[int8]]]()} {
		sent, err := schemaForType(typ)
		if err != nil {
			t.Fatal(err)
		}
		if err := mustCompile(t, `{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, nil).Validate(sent); err != nil {
			t.Errorf("the schema of %v is not valid: %v", typ, err)
		}
		if strings.Contains(string(sent), "null") || strings.Contains(string(sent), nullKeyword) {
			t.Errorf("the schema of %v speaks of null: %s", typ, sent)
		}
		s, err := compileInferred(typ)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewSource(1))
		for range 300 {
			v := reflect.New(typ)
			randomValue(r, v.Elem(), 0)
			text, err := json.Marshal(v.Interface())
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Validate(text); err != nil {
				t.Fatalf("%v: %v\n%s\n%s", typ, err, text, sent)
			}
		}
	}
}

func TestNilIsAcceptedButNotAdvertised(t *testing.T) {
	type args struct {
		List []int          `json:"list"`
		Map  map[string]int `json:"map"`
		Ptr  *inner         `json:"ptr"`
		Enum *string        `json:"enum" jsonschema:"enum=a|b"`
		Int  int            `json:"int,omitempty"`
	}
	s, err := compileInferred(reflect.TypeFor[args]())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate([]byte(`{"list":null,"map":null,"ptr":null,"enum":null}`)); err != nil {
		t.Error(err)
	}
	if err := s.Validate([]byte(`{"list":[null],"map":{},"int":null}`)); err == nil || err.Error() != "/list/0: must be an integer, got null; /int: must be an integer, got null" {
		t.Error(err)
	}
	sent, _ := schemaForType(reflect.TypeFor[args]())
	if err := mustCompile(t, string(sent), nil).Validate([]byte(`{"list":null,"map":{}}`)); err == nil {
		t.Error("the schema as sent accepts null")
	}
}

func TestArgumentTypesGiveObjectSchemas(t *testing.T) {
	for _, v := range []any{struct{}{}, &struct{}{}, map[string]any{}, json.RawMessage{}, new(any), ownJSON{}} {
		schema, s, err := argumentsSchema(reflect.TypeOf(v))
		if err != nil || !strings.HasPrefix(string(schema), `{"type":"object",`) || !strings.Contains(string(schema), `"properties":{}`) {
			t.Errorf("%T: %s, %v", v, schema, err)
		} else if err := s.Validate([]byte("{}")); err != nil {
			t.Errorf("%T: %v", v, err)
		} else if err := s.Validate([]byte("[]")); err == nil {
			t.Errorf("%T: an array is accepted", v)
		}
	}
	for _, v := range []any{"", 1, []int{}, time.Time{}, func() {}} {
		if _, _, err := argumentsSchema(reflect.TypeOf(v)); err == nil {
			t.Errorf("%T is accepted", v)
		}
	}
}

const typicalSchema = `{"type":"object","properties":{"path":{"type":"string","minLength":1},"limit":{"type":"integer","minimum":1,"maximum":1000},
	"recursive":{"type":"boolean"},"mode":{"enum":["fast","exact","both"]},"ratio":{"type":"number"},"tags":{"type":"array","items":{"type":"string"},"maxItems":10,"uniqueItems":true},
	"owner":{"$ref":"#/$defs/owner"},"note":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["path","mode","owner"],"additionalProperties":false,
	"$defs":{"owner":{"type":"object","properties":{"id":{"type":"integer"},"name":{"type":"string","pattern":"^[a-z]+$"}},"required":["id"],"additionalProperties":false}}}`

const typicalArguments = `{"path":"/tmp/some/file","limit":25,"recursive":true,"mode":"exact","ratio":0.25,"tags":["a","b","c"],"owner":{"id":9007199254740993,"name":"bob"},"note":null}`

func TestValidatingAllocatesNothing(t *testing.T) {
	s := mustCompile(t, typicalSchema, nil)
	doc := []byte(typicalArguments)
	if n := testing.AllocsPerRun(100, func() {
		if err := s.Validate(doc); err != nil {
			t.Fatal(err)
		}
	}); n > 0 && !raceEnabled {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkValidate(b *testing.B) {
	s := mustCompile(b, typicalSchema, nil)
	doc := []byte(typicalArguments)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Validate(doc); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValidateLarge(b *testing.B) {
	s := mustCompile(b, `{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer"},"name":{"type":"string"}},"required":["id"]}}`, nil)
	doc := []byte("[" + strings.Repeat(`{"id":12345,"name":"a name of some length"},`, 24000) + `{"id":1}]`)
	b.SetBytes(int64(len(doc)))
	b.Run("Validate", func(b *testing.B) {
		for b.Loop() {
			if err := s.Validate(doc); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json.Valid", func(b *testing.B) {
		for b.Loop() {
			json.Valid(doc)
		}
	})
}

func BenchmarkCompileSchema(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		mustCompile(b, typicalSchema, nil)
	}
}

func BenchmarkInferSchema(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		inferSchema(reflect.TypeFor[everything](), false)
	}
}

// FuzzSchema compiles any text as a schema and checks any other against it:
// nothing panics or hangs, what is accepted is JSON, and defaults keep it so.
func FuzzSchema(f *testing.F) {
	files, _ := filepath.Glob("testdata/schema/*.json")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var groups []suiteGroup
		if err := json.Unmarshal(text, &groups); err != nil {
			f.Fatal(err)
		}
		for _, g := range groups {
			f.Add([]byte(g.Schema), []byte(g.Tests[0].Data))
		}
	}
	f.Add([]byte(typicalSchema), []byte(typicalArguments))
	f.Fuzz(func(t *testing.T, schema, doc []byte) {
		s, err := CompileSchema(schema, &SchemaOptions{AssertFormat: true})
		if err != nil {
			return
		}
		if s.Validate(doc) == nil && !json.Valid(bytes.TrimPrefix(doc, []byte("\xEF\xBB\xBF"))) {
			t.Errorf("%q is accepted and is not JSON", doc)
		}
		if json.Valid(doc) && !json.Valid(s.applyDefaults(doc)) {
			t.Errorf("defaults make %q of %q", s.applyDefaults(doc), doc)
		}
	})
}

// FuzzTag reads any text as a tag: what is inferred from it compiles.
func FuzzTag(f *testing.F) {
	for _, tag := range []string{"a text, with commas", "x,minimum=1,maximum=2", "enum=1|2,default=1", "pattern=^a{1,2}$", "x,type=string,const=a", "required=false,examples=1|2"} {
		f.Add(tag)
	}
	kinds := []reflect.Type{reflect.TypeFor[int](), reflect.TypeFor[string](), reflect.TypeFor[[]bool](), reflect.TypeFor[any](), reflect.TypeFor[map[string]float64](),
		reflect.TypeFor[matrix](), reflect.TypeFor[*page[int8]](), reflect.TypeFor[time.Duration](), reflect.TypeFor[grade](), reflect.TypeFor[[]ring](), reflect.TypeFor[struct{ A, B *inner }]()}
	f.Fuzz(func(t *testing.T, tag string) {
		for _, kind := range kinds {
			said := reflect.StructTag("jsonschema:" + strconv.Quote(tag))
			typ := reflect.StructOf([]reflect.StructField{{Name: "A", Type: kind, Tag: said}, {Name: "B", Type: kind, Tag: said}})
			schema, err := inferSchema(typ, false)
			if err != nil {
				continue
			}
			if _, err := CompileSchema(schema, nil); err != nil {
				t.Errorf("%q on %v: %v: %s", tag, kind, err, schema)
			}
		}
	})
}

// Names of hosts with letters of all scripts, whole and in Punycode.
func TestHostNamesOfIDNA(t *testing.T) {
	check := mustCompile(t, `{"format":"idn-hostname"}`, &SchemaOptions{AssertFormat: true})
	ascii := mustCompile(t, `{"format":"hostname"}`, &SchemaOptions{AssertFormat: true})
	fits := func(s *Schema, name string) bool { return s.Validate(appendString(nil, name)) == nil }
	for _, name := range []string{
		"straße.example", "παράδειγμα.ελ", "例え.テスト", "a\u00b7b", "l\u00b7l", "קול׳", "ｅx", "Ärger", "-ä", "ä-", "ab--ä", "\u0301a", "カ・カ", "・",
		"نامه\u200cای", "क्\u200dष", "ش\u200cب", "ا\u200cب", "٣٤", "٣۴", "א1", "1א", "אb", "bא.c", "אב.1a", "إختبار.example", "\u0640ا", "\u302eg", "\u1100", "𝄞", "\u00ad", "\u0378",
	} {
		want := map[string]bool{
			"straße.example": true, "παράδειγμα.ελ": true, "例え.テスト": true, "l\u00b7l": true, "קול׳": true, "カ・カ": true,
			"نامه\u200cای": true, "क्\u200dष": true, "ش\u200cب": true, "א1": true, "إختبار.example": true,
		}[name]
		if fits(check, name) != want {
			t.Errorf("%+q: %v", name, !want)
		}
		var labels []string
		for _, label := range strings.Split(name, ".") {
			if !isPlainLabel(label) {
				label = "xn--" + toPunycode(label)
			}
			labels = append(labels, label)
		}
		if encoded := strings.Join(labels, "."); fits(ascii, encoded) != want || fits(check, encoded) != want {
			t.Errorf("%+q: %v", encoded, !want)
		}
	}
	for name, want := range map[string]bool{
		"": false, ".": false, "a.": false, "xn--": false, "xn--a": false, "xn--a-": false, "XN--MNCHEN-3YA": true, "xn--mnchen-3ya": true, "xn--mnchen-3ya.de": true, "ab--c": false,
		"a_b": false, "xn--99999999999999999999": false, strings.Repeat("a", 63): true, strings.Repeat("a", 64): false, strings.Repeat("a.", 126) + "a": true, strings.Repeat("a.", 127) + "a": false,
		"xn--" + strings.Repeat("9", 59): false, "xn--" + strings.Repeat("a", 1<<20): false,
	} {
		if fits(ascii, name) != want || fits(check, name) != want {
			t.Errorf("%.80q: %v %v", name, fits(ascii, name), fits(check, name))
		}
	}
	for _, name := range []string{"ü", "bücher", "他们为什么不说中文", "ليهمابتكلموشعربي؟", "3年b組金八先生", "-> $1.00 <--", "ü\U0001F600a"} {
		if back, ok := fromPunycode(toPunycode(name)); !ok || back != name {
			t.Errorf("%q becomes %q and %q", name, toPunycode(name), back)
		}
	}
	if got := toPunycode("他们为什么不说中文"); got != "ihqwcrb4cv8a8dqg056pqjye" {
		t.Error(got)
	}
}

// Names that no keyword knows are told apart object by object, however many
// there are.
func TestManyUnknownNames(t *testing.T) {
	shows(t, "schema.bounds")
	s, err := CompileSchema([]byte(`{"anyOf":[{"type":"array","items":{"type":"object","required":["none"]}},{"type":"array","items":{"type":"object"}}]}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for members := range 40 { // the table grows between any two of them
		for _, objects := range []int{1, 3, 100} {
			doc := []byte(`[`)
			for i := range objects {
				if i > 0 {
					doc = append(doc, ',')
				}
				doc = append(doc, '{')
				for m := range members {
					doc = fmt.Appendf(doc, `"member%d":%d,`, m, i)
				}
				doc = append(doc, `"last":0}`...)
			}
			if err := s.Validate(append(doc, ']')); err != nil {
				t.Fatalf("%d objects of %d members: %v", objects, members, err)
			}
			for m := range members {
				again := fmt.Appendf(bytes.Clone(doc[:len(doc)-1]), `,"m\u0065mber%d":0}]`, m)
				want := fmt.Sprintf("/%d/member%d: is given twice", objects-1, m)
				if err := s.Validate(again); err == nil || err.Error() != want {
					t.Fatalf("%d objects of %d members: %v", objects, members, err)
				}
			}
		}
	}
}
