/** The same kind of text in many charsets. The bytes were made by CPython's codecs, not by the libraries under test. */
export interface CharsetSample {
  readonly charset: string
  readonly text: string
  /** The encoded bytes. */
  readonly base64: string
}

export const charsetSamples: readonly CharsetSample[] = [
  { charset: 'windows-1251', text: 'Счёт за «ноябрь» – 5 €', base64: '0fe48iDn4CCr7e7/4fD8uyCWIDUgiA==' },
  { charset: 'windows-1252', text: 'Smart “quotes” – naïve café €', base64: 'U21hcnQgk3F1b3Rlc5QgliBuYe92ZSBjYWbpIIA=' },
  { charset: 'windows-1250', text: 'Příliš žluťoučký kůň', base64: 'UPjtbGmaIJ5sdZ1vdehr/SBr+fI=' },
  { charset: 'iso-8859-1', text: 'Grüße aus Köln', base64: 'R3L832UgYXVzIEv2bG4=' },
  { charset: 'iso-8859-15', text: 'Prix: 10 € œuvre', base64: 'UHJpeDogMTAgpCC9dXZyZQ==' },
  { charset: 'koi8-r', text: 'Привет, как дела?', base64: '8NLJ18XULCDLwcsgxMXMwT8=' },
  { charset: 'koi8-u', text: 'Привіт, Їжак і ґава', base64: '8NLJ16bULCC31sHLIKYgrcHXwQ==' },
  { charset: 'iso-2022-jp', text: '日本語のメール テスト', base64: 'GyRCRnxLXDhsJE4lYSE8JWsbKEIgGyRCJUYlOSVIGyhC' },
  { charset: 'shift_jis', text: '日本語のメール テスト', base64: 'k/qWe4zqgsyDgYFbg4sgg2WDWINn' },
  { charset: 'euc-jp', text: '日本語のメール テスト', base64: 'xvzL3LjspM6l4aG8pesgpcaluaXI' },
  { charset: 'gb18030', text: '中文邮件 测试 𠀀', base64: '1tDOxNPKvP4gsuLK1CCVMoI2' },
  { charset: 'gb2312', text: '中文邮件 测试', base64: '1tDOxNPKvP4gsuLK1A==' },
  { charset: 'gbk', text: '繁體也行 測試', base64: 't7Hzd9Ky0NAgnHnUhw==' },
  { charset: 'big5', text: '繁體中文郵件', base64: 'wWPF6aSkpOW2bKXz' },
  { charset: 'euc-kr', text: '안녕하세요 메일', base64: 'vsiz58fPvLy/5CC43sDP' },
  { charset: 'ks_c_5601-1987', text: '안녕하세요 메일', base64: 'vsiz58fPvLy/5CC43sDP' },
  { charset: 'iso-2022-kr', text: '안녕하세요 메일', base64: 'GyQpQw4+SDNnR088PD9kDyAOOF5ATw8=' },
  { charset: 'hz-gb-2312', text: '中文 mail 测试', base64: 'fntWUE5Efn0gbWFpbCB+ezJiSlR+fQ==' },
  { charset: 'utf-7', text: 'Grüße & 日本 ~', base64: 'R3IrQVB3QTN3LWUgJiArWmVWbkxBICtBSDQt' },
  { charset: 'windows-1256', text: 'مرحبا بالعالم', base64: '49HNyMcgyMfh2sfh4w==' },
  { charset: 'windows-1255', text: 'שלום עולם', base64: '+ezl7SDy5ezt' },
  { charset: 'iso-8859-8-i', text: 'שלום עולם', base64: '+ezl7SDy5ezt' },
  { charset: 'windows-874', text: 'สวัสดีชาวโลก', base64: 'ysfRyrTVqtLH4sWh' },
  { charset: 'tis-620', text: 'สวัสดีชาวโลก', base64: 'ysfRyrTVqtLH4sWh' },
  { charset: 'iso-8859-7', text: 'Καλημέρα κόσμε', base64: 'yuHr5+zd8eEg6vzz7OU=' },
  { charset: 'windows-1254', text: 'İyi günler ığş', base64: '3XlpIGf8bmxlciD98P4=' },
  { charset: 'windows-1257', text: 'Labas ąčęėįšųū', base64: 'TGFiYXMg4Ojm6+Hw+Ps=' },
  { charset: 'windows-1258', text: 'Tiêng Viêt đ', base64: 'VGnqbmcgVmnqdCDw' },
  { charset: 'utf-16le', text: 'Wide text äöü', base64: 'VwBpAGQAZQAgAHQAZQB4AHQAIADkAPYA/AA=' },
  { charset: 'utf-16', text: 'Wide text äöü', base64: '//5XAGkAZABlACAAdABlAHgAdAAgAOQA9gD8AA==' },
  { charset: 'utf-32', text: 'Wide 🎉 äöü', base64: '//4AAFcAAABpAAAAZAAAAGUAAAAgAAAAifMBACAAAADkAAAA9gAAAPwAAAA=' },
  { charset: 'utf-32le', text: 'Wide 🎉 äöü', base64: 'VwAAAGkAAABkAAAAZQAAACAAAACJ8wEAIAAAAOQAAAD2AAAA/AAAAA==' },
  { charset: 'utf-32be', text: 'Wide 🎉 äöü', base64: 'AAAAVwAAAGkAAABkAAAAZQAAACAAAfOJAAAAIAAAAOQAAAD2AAAA/A==' },
  { charset: 'utf-8', text: 'Emoji 🎉 ünïcödé', base64: 'RW1vamkg8J+OiSDDvG7Dr2PDtmTDqQ==' },
  { charset: 'ibm866', text: 'Привет DOS', base64: 'j+CooqXiIERPUw==' },
  { charset: 'macintosh', text: 'Café “Mac”', base64: 'Q2FmjiDSTWFj0w==' },
  { charset: 'x-mac-cyrillic', text: 'Привет', base64: 'j/Do4uXy' },
  { charset: 'iso-8859-2', text: 'Zażółć gęślą jaźń', base64: 'WmG/87PmIGfqtmyxIGphvPE=' },
]
