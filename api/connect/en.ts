/** The words of the connect wizard in English; de.ts has the same keys. `app` is the application's name. */
export const en = {
  language: 'English',
  otherLanguages: 'Language',
  title: 'Connect your mailbox',
  asks: (app: string) => `${app} asks for access to your mailbox`,
  asksAgain: (app: string) => `${app} needs your login once more`,
  stepOf: (step: number, all: number) => `Step ${step} of ${all}`,
  privacy: (app: string) =>
    `${app} will be able to read and change the mail in this mailbox. Your password is kept encrypted; ${app} does not see it.`,
  privacySignIn: (app: string) =>
    `${app} will be able to read and change the mail in this mailbox. You can take this permission back in your account at any time.`,

  emailLabel: 'Email address',
  emailHint: 'The address of the mailbox that you want to connect.',
  next: 'Continue',
  emailMissing: 'Please enter an email address, such as anna@example.com.',
  doubt: 'Please check the address',
  emailShort:
    'The end of this address seems to be missing, such as .com. If the address is right, press Continue again.',
  didYouMean: (similar: string) => `Did you mean ${similar}? If your address is right, press Continue again.`,
  useSimilar: (similar: string) => `Use ${similar}`,

  loginTitle: 'Log in to your mailbox',
  passwordLabel: 'Password of the mailbox',
  showPassword: 'Show',
  hidePassword: 'Hide',
  appPassword: (provider: string | undefined) => ({
    title: provider === undefined ? 'Many providers ask for an app password' : `${provider} needs an app password`,
    text: 'An app password is made for one program only, and can be taken back at any time. Your provider explains it here:',
  }),
  imapOff: {
    title: 'Turn IMAP on first',
    text: 'Your provider lets programs into a mailbox only after IMAP is turned on in its settings. It explains it here:',
  },
  googlePassword: {
    title: 'Google needs an app password',
    text: 'Google does not accept the password of your Google account here. Turn on two-step verification in your Google account, then make an app password and enter it here.',
    link: 'Make an app password at Google',
  },
  microsoftPassword: (app: string) => ({
    title: 'Microsoft does not accept passwords here',
    text: `Outlook, Hotmail and Microsoft 365 let programs in by a sign-in at Microsoft only, and ${app} has not set it up. Ask ${app} for it.`,
  }),
  helpPage: 'Help of your provider',
  signIn: (provider: string) => `Sign in with ${provider}`,
  or: 'or with a password',
  leavingTitle: (provider: string) => `To ${provider}`,
  leavingText: 'You sign in there, and come back here by yourself. We do not see your password.',
  leavingGo: (provider: string) => `Go on to ${provider}`,
  connect: 'Connect',
  otherAddress: 'Use another address',
  settingsTitle: 'Server settings',
  settingsUnknown:
    'We do not know the mail server of this address. Your provider or your administrator can tell you these settings; here is a guess.',
  serverLabel: 'IMAP server',
  portLabel: 'Port',
  securityLabel: 'Encryption',
  securityTls: 'TLS from the start (usually port 993)',
  securityStartTls: 'STARTTLS (usually port 143)',
  usernameLabel: 'User name',
  usernameHint: 'Often the whole email address.',
  passwordMissing: 'Please enter the password of the mailbox.',
  serverMissing: 'Please enter the name of the IMAP server, such as imap.example.com.',
  portWrong: 'The port is a number from 1 to 65535, usually 993.',
  usernameMissing: 'Please enter the user name of the mailbox.',
  tooLong: 'This is too long, or has characters that cannot be sent.',

  connectingTitle: 'Connecting',
  connectingHint: 'This takes a few seconds. The page goes on by itself.',
  progress: {
    finding: 'Looking for the mail server',
    login: 'Logging in',
    folders: 'Looking into the mailbox',
    saving: 'Saving the connection',
  },
  state: { done: 'done', now: 'under way', later: 'not yet' },

  doneTitle: 'Your mailbox is connected',
  doneClose: 'You can close this page now.',
  doneText: (app: string) => `You can go back to ${app} now.`,
  cancel: (app: string) => `Cancel, back to ${app}`,
  back: (app: string) => `Back to ${app}`,

  problem: 'That did not work',
  serverSaid: 'Details',
  failures: {
    auth_rejected:
      'The mail server did not accept this user name and password. Check both. Many providers do not take your usual password here, but an app password.',
    auth_unavailable: 'The mail server cannot check logins at the moment. Try again in a few minutes.',
    consent_lost: 'Your provider did not give us access. Sign in once more, and agree to the access.',
    permission:
      'The mail server does not let programs into this mailbox. Turn IMAP on in the settings of your mailbox, or ask your administrator to allow it.',
    throttled: 'There were too many logins within a short time. Wait a few minutes, then try again.',
    connection_limit:
      'The mail server allows no further connection to this mailbox. Close other mail programs, or wait a few minutes, then try again.',
    network: 'The connection to the mail server was lost. Try again. If it happens again, check the server settings.',
    tls: 'There is no safe connection to the mail server. Check the server name, the port and the encryption.',
    protocol:
      'What answered is no IMAP server, or one that we do not understand. Check the server name and the port: IMAP has 993 or 143, not the port for sending mail.',
    timeout: 'The mail server did not answer in time. Check the server name and the port, or try again later.',
    private_address:
      'This server is not on the public internet. Check the server name. Your administrator knows under which name it is reached from outside.',
    connection_refused:
      'The server takes no connection on this port. Check the server name and the port: usually 993, or 143 for STARTTLS.',
    host_not_found: 'There is no server of this name. Check the spelling of the server name.',
    token_rejected:
      'You have signed in, but the mail server does not let us into the mailbox. Turn IMAP on in the settings of your mailbox, then sign in once more.',
    consent_denied: 'Access to your mailbox was not granted. Sign in once more and agree, if you want to connect it.',
    consent_partial: 'Access was granted, but not to your mail. Sign in once more, and leave all boxes ticked.',
    consent_short:
      'Your provider has given access for a short time only. Remove the application from the list of connected applications in your account there, then sign in once more.',
    provider_down: 'Your provider does not answer. Try again in a few minutes.',
    provider_refuses:
      'Your provider does not accept this application. Go back to the application, and tell the people who run it.',
    sign_in_old: 'This sign-in is not valid any more. Sign in once more.',
    other_address:
      'You have signed in with another address. Sign in once more with the address that is shown here, or begin again with the other one.',
    taken: 'This link is being used in another window. Wait a few seconds, then try again here.',
    conflict:
      'This mailbox cannot be connected in this way. Go back to the application, and ask the people who run it.',
    ours: 'Something went wrong on our side. Try again in a few minutes.',
  },

  ends: {
    unknown: {
      title: 'This link is not known',
      text: 'Perhaps it was not copied as a whole. Go back to the application that has sent you here, and begin again there.',
    },
    used: {
      title: 'This link has been used',
      text: 'A mailbox has been connected by it, and it works only once. To connect another mailbox, go back to the application.',
    },
    expired: {
      title: 'This link has expired',
      text: 'Such a link is good for 24 hours. Go back to the application that has sent you here: it makes a new one.',
    },
    spent: {
      title: 'Too many tries',
      text: 'The login has failed so often by this link that it is good for nothing any more. Go back to the application: it makes a new one.',
    },
    outdated: {
      title: 'This page is out of date',
      text: 'It was open for too long, or your browser keeps no cookies. Nothing was sent on.',
    },
    sign_in_unknown: {
      title: 'This sign-in is not known',
      text: 'It took too long, or we were started anew meanwhile. Go back to the application that has sent you here, and begin again there.',
    },
    other_browser: {
      title: 'This sign-in belongs to another browser',
      text: 'It has to end in the browser in which it was begun. Go back to the application in this one, and begin again there.',
    },
    busy: {
      title: 'Too many at once',
      text: 'Very many forms came from your network. Wait a minute, then try again.',
    },
    broken: {
      title: 'Something went wrong on our side',
      text: 'Try again in a few minutes. If it happens again, tell the people who run the application.',
    },
  },
  otherMailbox: (tried: string, asked: string) => ({
    title: 'Another mailbox was chosen',
    text: `This link connects one mailbox, and another tab has chosen ${tried}. ${asked} is not connected.`,
  }),
  startAgain: 'Begin again',
}

export type Words = typeof en
