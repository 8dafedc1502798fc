/** A web page of the provider about its settings. */
export interface HelpPage {
  /** In English where there is a choice; may be empty. */
  readonly description: string
  readonly url: string
}

/** IMAP settings as the look-ups find them: of a domain, so that they serve all its addresses. */
export interface Settings {
  readonly server: string
  readonly port: number
  /** TLS from the first byte. */
  readonly useSsl: boolean
  readonly oauth: boolean
  /** May hold %EMAILADDRESS%, %EMAILLOCALPART% and %EMAILDOMAIN%. */
  readonly username: string
  readonly documentation: readonly HelpPage[]
}

export function usernameFor(settings: Pick<Settings, 'username'>, email: string): string {
  const at = email.lastIndexOf('@')
  const values: Readonly<Record<string, string>> = {
    '%EMAILADDRESS%': email,
    '%EMAILLOCALPART%': email.slice(0, at),
    '%EMAILDOMAIN%': email.slice(at + 1),
  }
  return settings.username.replace(/%EMAIL(?:ADDRESS|LOCALPART|DOMAIN)%/g, (name) => values[name] ?? name)
}
