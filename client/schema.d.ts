// Written by npm run docs.
export interface paths {
    "/lite/users": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List users */
        get: operations["getLiteUsers"];
        put?: never;
        /**
         * Create a user, with or without an email account
         * @description With mailbox settings the login is tried first; when the mail server refuses, the answer is 200 with `success: false`, a `feedback_code` and the connection log, and nothing is created. Without them the `status_callback_url` is kept for the email accounts that are added to the user later. With `migrate_account_id` a 2.0 account becomes a user as it is, but for the names and the `status_callback_url` (of all its email accounts; of those that come later when it has none) that are given. Its webhooks stay, and send what lite sends.
         */
        post: operations["postLiteUsers"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a user */
        get: operations["getLiteUsersId"];
        /** Edit a user: names, and the status callback URL of email accounts that are added later */
        put: operations["putLiteUsersId"];
        /** Edit a user: names, and the status callback URL of email accounts that are added later */
        post: operations["postLiteUsersId"];
        /** Remove a user, the email accounts and all that is stored of them */
        delete: operations["deleteLiteUsersId"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/email_accounts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List email accounts of a user */
        get: operations["getLiteUsersIdEmailAccounts"];
        put?: never;
        /**
         * Add an email account to a user
         * @description Logs in first. When the mail server refuses, the answer is 200 with `success: false` and nothing is created.
         */
        post: operations["postLiteUsersIdEmailAccounts"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/email_accounts/{label}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get an email account */
        get: operations["getLiteUsersIdEmailAccountsLabel"];
        put?: never;
        /**
         * Edit an email account
         * @description Changes what is named. New credentials or settings are tried first. `status=1` forgets a DISABLED state and connects anew; `force_status_check=1` logs in now: `success` says whether that went well, `feedback_code` why not, `status` what the email account is since. `email` changes the address that the user is found by, and nothing of the login; the label stays. A label that the user does not have yet, with all parameters of a mailbox, makes that email account (`0`: the first one).
         */
        post: operations["postLiteUsersIdEmailAccountsLabel"];
        /** Remove an email account and all that is stored of it */
        delete: operations["deleteLiteUsersIdEmailAccountsLabel"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/email_accounts/{label}/folders": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the folders of an email account */
        get: operations["getLiteUsersIdEmailAccountsLabelFolders"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/email_accounts/{label}/folders/{folder}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a folder */
        get: operations["getLiteUsersIdEmailAccountsLabelFoldersFolder"];
        put?: never;
        /**
         * Create a folder
         * @description A folder that exists already is a 409, a name that the mail server does not take a 400 with its words.
         */
        post: operations["postLiteUsersIdEmailAccountsLabelFoldersFolder"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/email_accounts/{label}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List messages of an email account
         * @description Answered from the index; `include_body`, `include_headers` and `body_search_string` ask the mail server. A message of a list whose contents the server does not give carries `body_error`; a body part over 1 MiB in a list (16 MiB alone) is cut and marked `truncated`. While a folder is read for the first time, a page that could lack messages (shorter than `limit`, or oldest first) and an unknown message id are a 503 that says how far the reading is.
         */
        get: operations["getLiteUsersIdEmailAccountsLabelMessages"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/email_accounts/{label}/folders/{folder}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List messages of a folder
         * @description Answered from the index; `include_body`, `include_headers` and `body_search_string` ask the mail server. A message of a list whose contents the server does not give carries `body_error`; a body part over 1 MiB in a list (16 MiB alone) is cut and marked `truncated`. While a folder is read for the first time, a page that could lack messages (shorter than `limit`, or oldest first) and an unknown message id are a 503 that says how far the reading is.
         */
        get: operations["getLiteUsersIdEmailAccountsLabelFoldersFolderMessages"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/email_accounts/{label}/messages/{message_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a message
         * @description Answered from the index; `include_body`, `include_headers` and `body_search_string` ask the mail server. A message of a list whose contents the server does not give carries `body_error`; a body part over 1 MiB in a list (16 MiB alone) is cut and marked `truncated`. While a folder is read for the first time, a page that could lack messages (shorter than `limit`, or oldest first) and an unknown message id are a 503 that says how far the reading is. With `body_search_string` the answer is 404 when the body does not hold the text.
         */
        get: operations["getLiteUsersIdEmailAccountsLabelMessagesMessageId"];
        /**
         * Move a message to another folder
         * @description Through a folder it leaves that one, also where the same mail lies in it twice. Without a folder in the path it leaves the first of its folders (INBOX, if it lies there) and stays in the others; one that lies in the new folder already stays as it is. To move it again to where it is changes nothing.
         */
        put: operations["putLiteUsersIdEmailAccountsLabelMessagesMessageId"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/email_accounts/{label}/folders/{folder}/messages/{message_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a message
         * @description Answered from the index; `include_body`, `include_headers` and `body_search_string` ask the mail server. A message of a list whose contents the server does not give carries `body_error`; a body part over 1 MiB in a list (16 MiB alone) is cut and marked `truncated`. While a folder is read for the first time, a page that could lack messages (shorter than `limit`, or oldest first) and an unknown message id are a 503 that says how far the reading is. With `body_search_string` the answer is 404 when the body does not hold the text.
         */
        get: operations["getLiteUsersIdEmailAccountsLabelFoldersFolderMessagesMessageId"];
        /**
         * Move a message to another folder
         * @description Through a folder it leaves that one, also where the same mail lies in it twice. Without a folder in the path it leaves the first of its folders (INBOX, if it lies there) and stays in the others; one that lies in the new folder already stays as it is. To move it again to where it is changes nothing.
         */
        put: operations["putLiteUsersIdEmailAccountsLabelFoldersFolderMessagesMessageId"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/email_accounts/{label}/messages/{message_id}/body": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the bodies of a message
         * @description Text parts as UTF-8, transfer encoding and charset undone. `type` = only parts of this MIME type.
         */
        get: operations["getLiteUsersIdEmailAccountsLabelMessagesMessageIdBody"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/email_accounts/{label}/folders/{folder}/messages/{message_id}/body": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the bodies of a message
         * @description Text parts as UTF-8, transfer encoding and charset undone. `type` = only parts of this MIME type.
         */
        get: operations["getLiteUsersIdEmailAccountsLabelFoldersFolderMessagesMessageIdBody"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/email_accounts/{label}/messages/{message_id}/headers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the headers of a message */
        get: operations["getLiteUsersIdEmailAccountsLabelMessagesMessageIdHeaders"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/email_accounts/{label}/folders/{folder}/messages/{message_id}/headers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the headers of a message */
        get: operations["getLiteUsersIdEmailAccountsLabelFoldersFolderMessagesMessageIdHeaders"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/email_accounts/{label}/messages/{message_id}/raw": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the whole message as it is on the mail server */
        get: operations["getLiteUsersIdEmailAccountsLabelMessagesMessageIdRaw"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/email_accounts/{label}/folders/{folder}/messages/{message_id}/raw": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the whole message as it is on the mail server */
        get: operations["getLiteUsersIdEmailAccountsLabelFoldersFolderMessagesMessageIdRaw"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/email_accounts/{label}/messages/{message_id}/attachments": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the attachments of a message */
        get: operations["getLiteUsersIdEmailAccountsLabelMessagesMessageIdAttachments"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/email_accounts/{label}/folders/{folder}/messages/{message_id}/attachments": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the attachments of a message */
        get: operations["getLiteUsersIdEmailAccountsLabelFoldersFolderMessagesMessageIdAttachments"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/email_accounts/{label}/messages/{message_id}/attachments/{attachment_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Download an attachment
         * @description The file as it was sent, byte for byte. When the mail server gives less of it than it says, the header `X-Service-Notice` begins with `truncated`. With `as_link=1` the JSON `{"link": …}` instead: an address that needs no authentication and expires.
         */
        get: operations["getLiteUsersIdEmailAccountsLabelMessagesMessageIdAttachmentsAttachmentId"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/email_accounts/{label}/folders/{folder}/messages/{message_id}/attachments/{attachment_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Download an attachment
         * @description The file as it was sent, byte for byte. When the mail server gives less of it than it says, the header `X-Service-Notice` begins with `truncated`. With `as_link=1` the JSON `{"link": …}` instead: an address that needs no authentication and expires.
         */
        get: operations["getLiteUsersIdEmailAccountsLabelFoldersFolderMessagesMessageIdAttachmentsAttachmentId"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/downloads/{account}/{message}/{attachment}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Download by a signed link
         * @description The address that `as_link=1` answers. 403 when it has expired, or is not letter for letter as it was answered.
         */
        get: operations["getDownloadsAccountMessageAttachment"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/email_accounts/{label}/messages/{message_id}/flags": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the flags of a message */
        get: operations["getLiteUsersIdEmailAccountsLabelMessagesMessageIdFlags"];
        put?: never;
        /** Set or unset flags of a message */
        post: operations["postLiteUsersIdEmailAccountsLabelMessagesMessageIdFlags"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/email_accounts/{label}/folders/{folder}/messages/{message_id}/flags": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the flags of a message */
        get: operations["getLiteUsersIdEmailAccountsLabelFoldersFolderMessagesMessageIdFlags"];
        put?: never;
        /** Set or unset flags of a message */
        post: operations["postLiteUsersIdEmailAccountsLabelFoldersFolderMessagesMessageIdFlags"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/email_accounts/{label}/messages/{message_id}/read": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Mark a message as read */
        post: operations["postLiteUsersIdEmailAccountsLabelMessagesMessageIdRead"];
        /** Mark a message as unread */
        delete: operations["deleteLiteUsersIdEmailAccountsLabelMessagesMessageIdRead"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/email_accounts/{label}/folders/{folder}/messages/{message_id}/read": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Mark a message as read */
        post: operations["postLiteUsersIdEmailAccountsLabelFoldersFolderMessagesMessageIdRead"];
        /** Mark a message as unread */
        delete: operations["deleteLiteUsersIdEmailAccountsLabelFoldersFolderMessagesMessageIdRead"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List user-level webhooks */
        get: operations["getLiteUsersIdWebhooks"];
        put?: never;
        /**
         * Create a webhook at user level
         * @description All filters have to match. Case does not matter. A text that begins with / is a regular expression (RE2) and has to end with one. A backslash takes its meaning from the wildcard, comma or bracket after it where [] is a wildcard. A bad or blank pattern is a 400 that says where.
         */
        post: operations["postLiteUsersIdWebhooks"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/webhooks/{webhook_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a webhook */
        get: operations["getLiteUsersIdWebhooksWebhookId"];
        put?: never;
        /**
         * Edit a webhook
         * @description Changes the parameters that are named; an empty one removes the value. `active` is 1 unless it is named.
         */
        post: operations["postLiteUsersIdWebhooksWebhookId"];
        /** Cancel a webhook */
        delete: operations["deleteLiteUsersIdWebhooksWebhookId"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List application-level webhooks */
        get: operations["getLiteWebhooks"];
        put?: never;
        /**
         * Create a webhook at application level
         * @description All filters have to match. Case does not matter. A text that begins with / is a regular expression (RE2) and has to end with one. A backslash takes its meaning from the wildcard, comma or bracket after it where [] is a wildcard. A bad or blank pattern is a 400 that says where.
         */
        post: operations["postLiteWebhooks"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/webhooks/{webhook_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a webhook */
        get: operations["getLiteWebhooksWebhookId"];
        put?: never;
        /**
         * Edit a webhook
         * @description Changes the parameters that are named; an empty one removes the value. `active` is 1 unless it is named.
         */
        post: operations["postLiteWebhooksWebhookId"];
        /** Cancel a webhook */
        delete: operations["deleteLiteWebhooksWebhookId"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/webhooks/{webhook_id}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the callbacks of a webhook: state, attempts, timings, answers
         * @description Newest first: its messages, its samples (`kind` test) and its failure notifications (`kind` failure), each with the `url` it went to.
         */
        get: operations["getLiteUsersIdWebhooksWebhookIdDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/webhooks/{webhook_id}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the callbacks of a webhook: state, attempts, timings, answers
         * @description Newest first: its messages, its samples (`kind` test) and its failure notifications (`kind` failure), each with the `url` it went to.
         */
        get: operations["getLiteWebhooksWebhookIdDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send one callback again, under the same webhook-id */
        post: operations["postLiteUsersIdWebhooksWebhookIdDeliveriesDeliveryIdRedeliver"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send one callback again, under the same webhook-id */
        post: operations["postLiteWebhooksWebhookIdDeliveriesDeliveryIdRedeliver"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/webhooks/{webhook_id}/redeliver": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How far the last redelivery of a time is */
        get: operations["getLiteUsersIdWebhooksWebhookIdRedeliver"];
        put?: never;
        /**
         * Send callbacks again: of a time, or those that failed
         * @description All message callbacks whose event lies in the time, oldest first, under the ids they had. What takes long is answered with `done` false and goes on, also over a restart; the same call again joins it, and GET says how far it is.
         */
        post: operations["postLiteUsersIdWebhooksWebhookIdRedeliver"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/webhooks/{webhook_id}/redeliver": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** How far the last redelivery of a time is */
        get: operations["getLiteWebhooksWebhookIdRedeliver"];
        put?: never;
        /**
         * Send callbacks again: of a time, or those that failed
         * @description All message callbacks whose event lies in the time, oldest first, under the ids they had. What takes long is answered with `done` false and goes on, also over a restart; the same call again joins it, and GET says how far it is.
         */
        post: operations["postLiteWebhooksWebhookIdRedeliver"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/webhooks/{webhook_id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send a sample callback now and answer what came of it */
        post: operations["postLiteUsersIdWebhooksWebhookIdTest"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/webhooks/{webhook_id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send a sample callback now and answer what came of it */
        post: operations["postLiteWebhooksWebhookIdTest"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/webhooks/{webhook_id}/secret": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the Standard Webhooks secret */
        get: operations["getLiteUsersIdWebhooksWebhookIdSecret"];
        put?: never;
        /** Make a new secret; the old one signs along for a day */
        post: operations["postLiteUsersIdWebhooksWebhookIdSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/webhooks/{webhook_id}/secret": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the Standard Webhooks secret */
        get: operations["getLiteWebhooksWebhookIdSecret"];
        put?: never;
        /** Make a new secret; the old one signs along for a day */
        post: operations["postLiteWebhooksWebhookIdSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/webhooks/{webhook_id}/dry_run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Which of the last stored messages would match, filter by filter
         * @description Of all email accounts that the webhook covers, newest first; each row says whose it is. `user_id` narrows an application-level webhook to one user, `label` to one email account of the user.
         */
        get: operations["getLiteUsersIdWebhooksWebhookIdDryRun"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/webhooks/{webhook_id}/dry_run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Which of the last stored messages would match, filter by filter
         * @description Of all email accounts that the webhook covers, newest first; each row says whose it is. `user_id` narrows an application-level webhook to one user, `label` to one email account of the user.
         */
        get: operations["getLiteWebhooksWebhookIdDryRun"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/email_accounts/{label}/messages/{message_id}/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Why a message was or was not sent to a webhook
         * @description When it was seen and as what, what the webhook was like then, what each filter says, and every callback that was queued with its attempts and answers. `matched` tells whether a callback was due. Nothing is judged that did not happen: for that there is the dry run. `webhook_id` is a webhook of the user or of the application.
         */
        get: operations["getLiteUsersIdEmailAccountsLabelMessagesMessageIdExplain"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/email_accounts/{label}/folders/{folder}/messages/{message_id}/explain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Why a message was or was not sent to a webhook
         * @description When it was seen and as what, what the webhook was like then, what each filter says, and every callback that was queued with its attempts and answers. `matched` tells whether a callback was due. Nothing is judged that did not happen: for that there is the dry run. `webhook_id` is a webhook of the user or of the application.
         */
        get: operations["getLiteUsersIdEmailAccountsLabelFoldersFolderMessagesMessageIdExplain"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/changes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read the change log of a user, as a page or as a stream
         * @description Messages received, sent, filed, flagged, deleted, through this API too, over all email accounts of the user, oldest first. Ask again with the answered `cursor`. With `Accept: text/event-stream` the answer is a stream of server-sent events that goes on with what happens: each has its event as its name and the cursor as its id; come back with `Last-Event-ID` and nothing is lost. A user has at most 16 streams at once, a developer 200; more are a 429. Changes are kept for 30 days.
         */
        get: operations["getLiteUsersIdChanges"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/contacts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the contacts of a user
         * @description `total_count`: all messages with the contact, in From, To, Cc or Bcc; `indirect_count`: received from the contact; `direct_count`: received and replied to. Drafts, junk and what lies in the trash when it is first seen count for nobody. The counts do not go down when mail is deleted; they lose the part of an email account when it is removed. They grow while the mail of an email account is read for the first time; until then an empty page and an unknown contact are a 503 that says how far the reading is.
         */
        get: operations["getLiteUsersIdContacts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/contacts/{contactid}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a contact by its id or email address */
        get: operations["getLiteUsersIdContactsContactid"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/connect_tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the connect tokens of the application, used and unused */
        get: operations["getLiteConnectTokens"];
        put?: never;
        /**
         * Create a connect token for the application
         * @description Send the end user's browser to `browser_redirect_url`: the wizard there makes a user with an email account, and then the browser is sent on to `callback_url` with the token in the query. Good for 24 hours, for 20 tries, and once.
         */
        post: operations["postLiteConnectTokens"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/connect_tokens/{token}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a connect token */
        get: operations["getLiteConnectTokensToken"];
        put?: never;
        post?: never;
        /**
         * Remove a connect token
         * @description Its redirect URL is good for nothing any more. What it has made stays.
         */
        delete: operations["deleteLiteConnectTokensToken"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/connect_tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the connect tokens of a user, used and unused */
        get: operations["getLiteUsersIdConnectTokens"];
        put?: never;
        /**
         * Create a connect token for a user
         * @description Send the end user's browser to `browser_redirect_url`: the wizard there adds an email account to the user, and then the browser is sent on to `callback_url` with the token in the query. Good for 24 hours, for 20 tries, and once.
         */
        post: operations["postLiteUsersIdConnectTokens"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/connect_tokens/{token}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a connect token */
        get: operations["getLiteUsersIdConnectTokensToken"];
        put?: never;
        post?: never;
        /**
         * Remove a connect token
         * @description Its redirect URL is good for nothing any more. What it has made stays.
         */
        delete: operations["deleteLiteUsersIdConnectTokensToken"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/email_accounts/{label}/connect_tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the connect tokens of an email account, used and unused */
        get: operations["getLiteUsersIdEmailAccountsLabelConnectTokens"];
        put?: never;
        /**
         * Create a connect token for an email account
         * @description Send the end user's browser to `browser_redirect_url`: the wizard there gives the email account new credentials, and then the browser is sent on to `callback_url` with the token in the query. Good for 24 hours, for 20 tries, and once.
         */
        post: operations["postLiteUsersIdEmailAccountsLabelConnectTokens"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/users/{id}/email_accounts/{label}/connect_tokens/{token}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a connect token */
        get: operations["getLiteUsersIdEmailAccountsLabelConnectTokensToken"];
        put?: never;
        post?: never;
        /**
         * Remove a connect token
         * @description Its redirect URL is good for nothing any more. What it has made stays.
         */
        delete: operations["deleteLiteUsersIdEmailAccountsLabelConnectTokensToken"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/discovery": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Find the IMAP settings of an email address
         * @description Looks in a table of known providers, at what the domain publishes for mail clients, and in DNS; then at the usual hosts of the domain. 404 when nothing is known; the mailbox may still be connected with settings of your own. 503 when that is because a name server did not say. `list=1` answers an array of all that was found, best first.
         */
        get: operations["getLiteDiscovery"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/oauth_providers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the OAuth providers of the API key */
        get: operations["getLiteOauthProviders"];
        put?: never;
        /**
         * Register an OAuth provider, or replace its secret
         * @description The secret is kept sealed and shown abbreviated. The same consumer key again replaces type and secret.
         */
        post: operations["postLiteOauthProviders"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/lite/oauth_providers/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get an OAuth provider by its consumer key */
        get: operations["getLiteOauthProvidersKey"];
        put?: never;
        post?: never;
        /**
         * Remove an OAuth provider
         * @description Email accounts that use it cannot get access tokens any more and become DISABLED.
         */
        delete: operations["deleteLiteOauthProvidersKey"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/status_callback_url": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the application-wide status callback URL */
        get: operations["getAppStatusCallbackUrl"];
        put?: never;
        /** Set the application-wide status callback URL */
        post: operations["postAppStatusCallbackUrl"];
        /** Remove the application-wide status callback URL */
        delete: operations["deleteAppStatusCallbackUrl"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/logs/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List callbacks of every kind, newest first
         * @description Message, status, failure and other callbacks with the `url` of each attempt. `status_code_*` looks at the last attempt. With `account_id` only callbacks about its email accounts, with `label` too about that one: `kind=status` lists its status callbacks.
         */
        get: operations["getAppLogsWebhooks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/logs/webhooks/{delivery_id}/redeliver": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send one callback of any kind again, under the same webhook-id
         * @description Status and sync callbacks and failure notifications go to the URL that they went to before.
         */
        post: operations["postAppLogsWebhooksDeliveryIdRedeliver"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/app/logs/calls": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List calls of the API, newest first
         * @description A call is here about a second after its answer. A regular expression over the path is tried on the newest 50,000 calls that the other parameters let through; when these do not fill the page, the answer is a 400 that says so.
         */
        get: operations["getAppLogsCalls"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/email_addresses": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/email_addresses/{email}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/sources": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/sources/{label}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/sync": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/sources/{label}/sync": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/connect_tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/connect_tokens/{token}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/connect_tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/connect_tokens/{token}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/sources/{label}/connect_tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/sources/{label}/connect_tokens/{token}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/connect_tokens/{token}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/sources/{label}/folders/{folder}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/message/{message_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/messages/{message_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/message/{message_id}/body": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/messages/{message_id}/body": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/message/{message_id}/headers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/messages/{message_id}/headers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/message/{message_id}/source": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/messages/{message_id}/source": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/message/{message_id}/flags": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/messages/{message_id}/flags": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/message/{message_id}/files": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/messages/{message_id}/files": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/sources/{label}/folders": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/sources/{label}/folders/{folder}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/sources/{label}/folders/{folder}/expunge": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/files": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/files/{file_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/files/{file_id}/related": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/files/{file_id}/revisions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/files/{file_id}/content": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/threads": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/threads/{thread_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/message/{message_id}/thread": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/messages/{message_id}/thread": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/contacts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/contacts/{email}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/contacts/{email}/files": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/contacts/{email}/messages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/contacts/{email}/threads": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/discovery": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/oauth_providers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/oauth_provider": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/oauth_providers/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/oauth_provider/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/message/{message_id}/folders": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/messages/{message_id}/folders": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/threads/{thread_id}/folders": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/accounts/{id}/webhooks/{webhook_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/2.0/webhooks/{webhook_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export interface webhooks {
    message: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Message callback: mail has come, was sent, filed or changed
         * @description To the `callback_url` of each active webhook that the event matches: for the first event of a message, or with `receive_all_changes=1` for every one. The test callback of a webhook has `test: true` and a made-up message.
         */
        post: operations["messageCallback"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    status: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Status callback: an email account has become DISABLED, or is OK again
         * @description To the `status_callback_url` of the email account, or else of the application. Once per change.
         */
        post: operations["statusCallback"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    failure: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Failure notification: callbacks of a webhook do not arrive
         * @description To the `failure_notif_url` of the webhook, when its `failure` becomes true. Once until it is false again.
         */
        post: operations["failureCallback"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    sync: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sync callback: the mailbox was read for the first time
         * @description Historical, of the 2.0 API: to the `callback_url` that a source was created with. Once.
         */
        post: operations["syncCallback"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export interface components {
    schemas: {
        /**
         * @example {
         *       "type": "error",
         *       "value": "user 5f3c8a2b9d4e1f6a7b8c9d0e is invalid"
         *     }
         */
        Error: {
            /** @constant */
            type: "error";
            /** @description what is wrong, naming the parameter or id */
            value: string;
            /** @description 105: the signature is wrong */
            code?: number;
        };
        /**
         * @example {
         *       "id": "5f3c8a2b9d4e1f6a7b8c9d0e",
         *       "username": "anna@example.com",
         *       "created": 1700000000,
         *       "suspended": 0,
         *       "password_expired": 0,
         *       "first_name": "Anna",
         *       "last_name": "Berg",
         *       "email_addresses": [
         *         "anna@example.com"
         *       ],
         *       "email_accounts": [
         *         {
         *           "server": "imap.example.com",
         *           "label": "anna::example",
         *           "username": "anna@example.com",
         *           "port": 993,
         *           "use_ssl": true,
         *           "type": "imap",
         *           "authentication_type": "password",
         *           "status": "OK",
         *           "status_message": null,
         *           "status_callback_url": null,
         *           "resource_url": "https://mail.example.com/lite/users/5f3c8a2b9d4e1f6a7b8c9d0e/email_accounts/anna%3A%3Aexample"
         *         }
         *       ],
         *       "resource_url": "https://mail.example.com/lite/users/5f3c8a2b9d4e1f6a7b8c9d0e"
         *     }
         */
        User: {
            id: string;
            username: string;
            created: number;
            /** @constant */
            suspended: 0;
            /** @constant */
            password_expired: 0;
            first_name: string;
            last_name: string;
            email_addresses: string[];
            email_accounts: components["schemas"]["EmailAccount"][];
            /** @description of email accounts that are added later and name none; absent when there is none */
            status_callback_url?: string;
            resource_url: string;
        };
        /**
         * @example {
         *       "server": "imap.example.com",
         *       "label": "anna::example",
         *       "username": "anna@example.com",
         *       "port": 993,
         *       "use_ssl": true,
         *       "type": "imap",
         *       "authentication_type": "password",
         *       "status": "OK",
         *       "status_message": null,
         *       "status_callback_url": null,
         *       "resource_url": "https://mail.example.com/lite/users/5f3c8a2b9d4e1f6a7b8c9d0e/email_accounts/anna%3A%3Aexample"
         *     }
         */
        EmailAccount: {
            server: string;
            label: string;
            username: string;
            port: number;
            use_ssl: boolean;
            /** @constant */
            type: "imap";
            /** @enum {string} */
            authentication_type: "password" | "oauth2";
            /** @enum {string} */
            status: "OK" | "DISABLED";
            status_message: string | null;
            status_callback_url: string | null;
            resource_url: string;
        };
        /**
         * @example {
         *       "name": "INBOX",
         *       "nb_messages": 1280,
         *       "nb_unseen_messages": 12,
         *       "delimiter": "/",
         *       "symbolic_name": "\\Inbox",
         *       "xlist_name": "\\Inbox",
         *       "resource_url": "https://mail.example.com/lite/users/5f3c8a2b9d4e1f6a7b8c9d0e/email_accounts/anna%3A%3Aexample/folders/INBOX"
         *     }
         */
        Folder: {
            name: string;
            nb_messages: number;
            nb_unseen_messages: number;
            delimiter: string;
            symbolic_name: string;
            xlist_name: string;
            resource_url: string;
        };
        /**
         * @example {
         *       "person_info": {
         *         "ben@example.org": {
         *           "thumbnail": "https://secure.gravatar.com/avatar/0c9b3b4a5d6e7f8091a2b3c4d5e6f708?s=50&d=mm"
         *         }
         *       },
         *       "subject": "Hello",
         *       "message_id": "8b1a9953c4611296a827abf8",
         *       "email_message_id": "<20231114.1@example.org>",
         *       "list_headers": [],
         *       "in_reply_to": null,
         *       "references": [],
         *       "received_headers": [
         *         "from mx.example.org by imap.example.com; Tue, 14 Nov 2023 22:13:15 +0000"
         *       ],
         *       "folders": [
         *         "INBOX"
         *       ],
         *       "sent_at": 1699999990,
         *       "received_at": 1699999995,
         *       "addresses": {
         *         "from": [
         *           {
         *             "name": "Ben Lind",
         *             "email": "ben@example.org"
         *           }
         *         ],
         *         "to": [
         *           {
         *             "name": "Anna Berg",
         *             "email": "anna@example.com"
         *           }
         *         ]
         *       },
         *       "attachments": [
         *         {
         *           "size": 48213,
         *           "type": "application/pdf",
         *           "body_section": "2",
         *           "file_name": "offer.pdf",
         *           "content_disposition": "attachment",
         *           "content_id": null,
         *           "attachment_id": 0,
         *           "x_attachment_id": "",
         *           "encoding": "base64",
         *           "is_embedded": false
         *         }
         *       ],
         *       "bodies": [
         *         {
         *           "body_section": "1",
         *           "type": "text/plain",
         *           "encoding": "quoted-printable",
         *           "size": 18,
         *           "charset": "utf-8",
         *           "content": "See you on Monday."
         *         }
         *       ],
         *       "flags": {
         *         "read": true,
         *         "answered": false,
         *         "flagged": false,
         *         "draft": false,
         *         "raw": [
         *           "\\Seen"
         *         ]
         *       },
         *       "resource_url": "https://mail.example.com/lite/users/5f3c8a2b9d4e1f6a7b8c9d0e/email_accounts/anna%3A%3Aexample/messages/8b1a9953c4611296a827abf8"
         *     }
         */
        Message: {
            person_info: {
                [key: string]: {
                    thumbnail: string;
                };
            } | unknown[];
            subject: string;
            message_id: string;
            email_message_id: string;
            mailhost_message_id?: string;
            mailhost_thread_id?: string;
            gmail_message_id?: string;
            gmail_thread_id?: string;
            list_headers: {
                [key: string]: string;
            } | unknown[];
            in_reply_to: string | null;
            references: string[];
            received_headers: string[];
            folders: string[];
            body_error?: string;
            sent_at: number;
            received_at: number;
            addresses: {
                from?: {
                    name: string;
                    email: string;
                }[];
                sender?: {
                    name: string;
                    email: string;
                }[];
                reply_to?: {
                    name: string;
                    email: string;
                }[];
                to?: {
                    name: string;
                    email: string;
                }[];
                cc?: {
                    name: string;
                    email: string;
                }[];
                bcc?: {
                    name: string;
                    email: string;
                }[];
            } | unknown[];
            attachments: components["schemas"]["Attachment"][];
            bodies: components["schemas"]["BodyPart"][];
            /**
             * @example {
             *       "read": true,
             *       "answered": false,
             *       "flagged": false,
             *       "draft": false,
             *       "raw": [
             *         "\\Seen"
             *       ]
             *     }
             */
            flags?: {
                read: boolean;
                answered: boolean;
                flagged: boolean;
                draft: boolean;
                raw: string[];
            };
            resource_url: string;
        };
        /**
         * @example {
         *       "size": 48213,
         *       "type": "application/pdf",
         *       "body_section": "2",
         *       "file_name": "offer.pdf",
         *       "content_disposition": "attachment",
         *       "content_id": null,
         *       "attachment_id": 0,
         *       "x_attachment_id": "",
         *       "encoding": "base64",
         *       "is_embedded": false
         *     }
         */
        Attachment: {
            size: number;
            type: string;
            body_section: string;
            file_name: string;
            content_disposition: string;
            content_id: string | null;
            attachment_id: number;
            x_attachment_id: string;
            encoding: string;
            is_embedded: boolean;
        };
        /**
         * @example {
         *       "body_section": "1",
         *       "type": "text/plain",
         *       "encoding": "quoted-printable",
         *       "size": 18,
         *       "charset": "utf-8",
         *       "content": "See you on Monday."
         *     }
         */
        BodyPart: {
            body_section: string;
            type: string;
            encoding: string;
            size: number;
            charset?: string;
            content?: string;
            /** @constant */
            truncated?: true;
        };
        /**
         * @example {
         *       "webhook_id": "6a1f3c8b2d9e4f5a7b8c9d0e",
         *       "callback_url": "https://app.example.com/mail",
         *       "active": true,
         *       "failure": false,
         *       "last_success_at": 1700000003,
         *       "filter_from": "*@example.org",
         *       "include_body": true,
         *       "body_type": "text/plain",
         *       "include_header": false,
         *       "receive_all_changes": false,
         *       "receive_drafts": false,
         *       "receive_historical": false,
         *       "resource_url": "https://mail.example.com/lite/users/5f3c8a2b9d4e1f6a7b8c9d0e/webhooks/6a1f3c8b2d9e4f5a7b8c9d0e"
         *     }
         */
        Webhook: {
            webhook_id: string;
            callback_url: string;
            failure_notif_url?: string;
            /** @description absent = MAILROOM_WEBHOOK_SCHEDULE */
            retry_schedule?: string;
            active: boolean;
            /** @description true from the third failed attempt in a row until the next success */
            failure: boolean;
            /** @description of the last attempt, while attempts fail */
            last_error?: string;
            /** @description Unix timestamp in seconds: the first of the attempts that have all failed since */
            failing_since?: number;
            /** @description Unix timestamp in seconds: it has failed for too long: callbacks wait, and one is tried now and then */
            abandoned_since?: number;
            /** @description Unix timestamp in seconds: no callback is sent before, then the oldest that waits is tried; absent = each callback has its own time */
            retry_at?: number;
            /** @description Unix timestamp in seconds: the last delivered callback; while all goes well, up to a minute late */
            last_success_at?: number;
            filter_to?: string;
            filter_from?: string;
            filter_cc?: string;
            filter_subject?: string;
            filter_thread?: string;
            filter_file_name?: string;
            filter_folder_added?: string;
            filter_folder_removed?: string;
            filter_to_domain?: string;
            filter_from_domain?: string;
            body_search?: string;
            include_body: boolean;
            body_type?: string;
            include_header: boolean;
            /**
             * @description with include_header: how callbacks carry the header; set by include_header=1 or raw
             * @enum {string}
             */
            header_format?: "parsed" | "raw";
            receive_all_changes: boolean;
            receive_drafts: boolean;
            receive_historical: boolean;
            /** @description at application level */
            developerId?: string;
            /** @description of its callbacks: `lite` or `2.0`; at application level, and of webhooks of 2.0 */
            version?: string;
            resource_url: string;
        };
        /**
         * @example {
         *       "delivery_id": "9c4d2e7f1a8b3c5d6e0f7a1b",
         *       "webhook_id": "6a1f3c8b2d9e4f5a7b8c9d0e",
         *       "url": "https://app.example.com/mail",
         *       "kind": "message",
         *       "event": "received",
         *       "state": "delivered",
         *       "reason": null,
         *       "account_id": "5f3c8a2b9d4e1f6a7b8c9d0e",
         *       "message_id": "8b1a9953c4611296a827abf8",
         *       "created": 1700000000,
         *       "due": null,
         *       "finished": 1700000003,
         *       "attempt_count": 1,
         *       "attempts": [
         *         {
         *           "timestamp": 1700000002,
         *           "url": "https://app.example.com/mail",
         *           "duration_ms": 84,
         *           "status_code": 200,
         *           "error": null,
         *           "response": "ok"
         *         }
         *       ]
         *     }
         */
        Delivery: {
            delivery_id: string;
            /** @description of kind message, test and failure */
            webhook_id: string | null;
            /** @description where the last attempt went, or the first one will go; null = nowhere any more */
            url: string | null;
            /** @enum {string} */
            kind: "message" | "status" | "failure" | "sync" | "test";
            event: string | null;
            /** @enum {string} */
            state: "pending" | "delivered" | "failed" | "skipped";
            reason: string | null;
            account_id: string | null;
            message_id: string | null;
            created: number;
            due: number | null;
            finished: number | null;
            attempt_count: number;
            attempts: {
                timestamp: number;
                url: string | null;
                duration_ms: number;
                status_code: number | null;
                error: string | null;
                response: string | null;
            }[];
        };
        /**
         * @example {
         *       "redelivered": 17,
         *       "done": true,
         *       "reason": null,
         *       "from": 1700000000,
         *       "to": 1700003600,
         *       "failed_only": true,
         *       "started": 1700010000
         *     }
         */
        Redelivery: {
            /** @description callbacks that are queued again */
            redelivered: number;
            /** @description false = more of that time are being queued */
            done: boolean;
            /** @description why it ended before its end */
            reason: string | null;
            from: number | null;
            to: number | null;
            failed_only: boolean;
            /** @description null = nothing has been sent again yet */
            started: number | null;
        };
        /**
         * @example {
         *       "id": "c3d5e7f9a1b2c4d6e8f0a1b2",
         *       "sequence": 1042,
         *       "timestamp": 1700000000,
         *       "account_id": "5f3c8a2b9d4e1f6a7b8c9d0e",
         *       "label": "anna::example",
         *       "event": "received",
         *       "first": true,
         *       "message_id": "8b1a9953c4611296a827abf8",
         *       "folder": "INBOX",
         *       "uid": 4711,
         *       "flags": [],
         *       "folders": [
         *         "INBOX"
         *       ],
         *       "resource_url": "https://mail.example.com/lite/users/5f3c8a2b9d4e1f6a7b8c9d0e/email_accounts/anna%3A%3Aexample/messages/8b1a9953c4611296a827abf8"
         *     }
         */
        Change: {
            /** @description the same for the same event, however often it is read */
            id: string;
            /** @description 1, 2, 3 … per email account, without gaps */
            sequence: number;
            timestamp: number;
            account_id: string;
            label: string;
            /** @enum {string} */
            event: "received" | "sent" | "draft" | "folder_added" | "folder_removed" | "flags_changed" | "deleted";
            /** @description the message's first event */
            first: boolean;
            message_id: string;
            folder: string;
            uid: number;
            flags: string[];
            /** @description of the message right after the event */
            folders: string[];
            resource_url: string;
        };
        /**
         * @example {
         *       "email": "ben@example.org",
         *       "name": "Ben Lind",
         *       "total_count": 42,
         *       "direct_count": 12,
         *       "indirect_count": 30,
         *       "last_received": 1700000000,
         *       "service_user_id": "5f3c8a2b9d4e1f6a7b8c9d0e",
         *       "contact_id": "d1e2f3a4b5c6d7e8f9a0b1c2"
         *     }
         */
        Contact: {
            email: string;
            name: string;
            /** @description all messages with the contact: in From, To, Cc or Bcc, received or sent */
            total_count: number;
            /** @description messages received from the contact and replied to */
            direct_count: number;
            /** @description messages received from the contact */
            indirect_count: number;
            /** @description Unix timestamp of the newest message received from the contact; 0 = none was */
            last_received: number;
            service_user_id: string;
            contact_id: string;
        };
        /**
         * @example {
         *       "token": "k3v9x1m7q2w8e5r4",
         *       "created": 1700000000,
         *       "used": 0,
         *       "expires": 1700086400,
         *       "callback_url": "https://app.example.com/connected",
         *       "email": "anna@example.com",
         *       "first_name": "Anna",
         *       "last_name": "Berg",
         *       "browser_redirect_url": "https://mail.example.com/connect/k3v9x1m7q2w8e5r4",
         *       "account_lite": true,
         *       "resource_url": "https://mail.example.com/lite/connect_tokens/k3v9x1m7q2w8e5r4"
         *     }
         * @example {
         *       "token": "k3v9x1m7q2w8e5r4",
         *       "created": 1700000000,
         *       "used": 1700000300,
         *       "expires": false,
         *       "callback_url": "https://app.example.com/connected",
         *       "email": "anna@example.com",
         *       "first_name": "Anna",
         *       "last_name": "Berg",
         *       "browser_redirect_url": "https://mail.example.com/connect/k3v9x1m7q2w8e5r4",
         *       "account_lite": true,
         *       "resource_url": "https://mail.example.com/lite/connect_tokens/k3v9x1m7q2w8e5r4",
         *       "serverLabel": "anna::example",
         *       "email_account_id": "anna::example",
         *       "user": {
         *         "id": "5f3c8a2b9d4e1f6a7b8c9d0e",
         *         "username": "anna@example.com",
         *         "created": 1700000000,
         *         "suspended": 0,
         *         "password_expired": 0,
         *         "first_name": "Anna",
         *         "last_name": "Berg",
         *         "email_addresses": [
         *           "anna@example.com"
         *         ],
         *         "email_accounts": [
         *           {
         *             "server": "imap.example.com",
         *             "label": "anna::example",
         *             "username": "anna@example.com",
         *             "port": 993,
         *             "use_ssl": true,
         *             "type": "imap",
         *             "authentication_type": "password",
         *             "status": "OK",
         *             "status_message": null,
         *             "status_callback_url": null,
         *             "resource_url": "https://mail.example.com/lite/users/5f3c8a2b9d4e1f6a7b8c9d0e/email_accounts/anna%3A%3Aexample"
         *           }
         *         ],
         *         "resource_url": "https://mail.example.com/lite/users/5f3c8a2b9d4e1f6a7b8c9d0e"
         *       }
         *     }
         */
        ConnectToken: {
            token: string;
            created: number;
            /** @description 0 while unused, else Unix timestamp of use */
            used: number;
            /** @description Unix timestamp while unused; false once used */
            expires: number | false;
            callback_url: string;
            email?: string;
            first_name: string;
            last_name: string;
            status_callback_url?: string;
            browser_redirect_url: string;
            /** @description label of the email account, or source, once there is one */
            serverLabel?: string;
            /** @constant */
            account_lite: true;
            /** @description the same, once the token is used */
            email_account_id?: string;
            /** @description once the token is used */
            user?: components["schemas"]["User"];
            resource_url: string;
        };
        /**
         * @example {
         *       "email": "anna@example.com",
         *       "found": true,
         *       "resource_url": "https://mail.example.com/lite/discovery?email=anna%40example.com",
         *       "type": "generic",
         *       "imap": {
         *         "server": "imap.example.com",
         *         "username": "anna@example.com",
         *         "port": 993,
         *         "use_ssl": true,
         *         "oauth": false
         *       },
         *       "documentation": [
         *         {
         *           "description": "Set up your mail program",
         *           "url": "https://help.example.com/imap"
         *         }
         *       ]
         *     }
         */
        Discovery: {
            email: string;
            /** @constant */
            found: true;
            resource_url: string;
            type: string;
            /**
             * @example {
             *       "server": "imap.example.com",
             *       "username": "anna@example.com",
             *       "port": 993,
             *       "use_ssl": true,
             *       "oauth": false
             *     }
             */
            imap: {
                server: string;
                username: string;
                port: number;
                use_ssl: boolean;
                oauth: boolean;
            };
            /** @description pages of the provider about its settings */
            documentation: {
                description: string;
                url: string;
            }[];
        };
        /**
         * @example {
         *       "type": "GMAIL_OAUTH2",
         *       "provider_consumer_key": "my-consumer-key",
         *       "provider_consumer_secret": "my-[...]ret",
         *       "resource_url": "https://mail.example.com/lite/oauth_providers/my-consumer-key"
         *     }
         */
        OAuthProvider: {
            /** @enum {string} */
            type: "PROVIDER_A_OAUTH2" | "GMAIL_OAUTH2" | "GMAIL" | "PROVIDER_B_CONNECT" | "MSLIVECONNECT";
            provider_consumer_key: string;
            provider_consumer_secret: string;
            resource_url: string;
        };
        /**
         * @example {
         *       "delivery_id": "9c4d2e7f1a8b3c5d6e0f7a1b",
         *       "webhook_id": "6a1f3c8b2d9e4f5a7b8c9d0e",
         *       "url": "https://app.example.com/mail",
         *       "kind": "message",
         *       "event": "received",
         *       "state": "delivered",
         *       "reason": null,
         *       "account_id": "5f3c8a2b9d4e1f6a7b8c9d0e",
         *       "message_id": "8b1a9953c4611296a827abf8",
         *       "created": 1700000000,
         *       "due": null,
         *       "finished": 1700000003,
         *       "attempt_count": 1,
         *       "attempts": [
         *         {
         *           "timestamp": 1700000002,
         *           "url": "https://app.example.com/mail",
         *           "duration_ms": 84,
         *           "status_code": 200,
         *           "error": null,
         *           "response": "ok"
         *         }
         *       ],
         *       "timestamp": 1700000002,
         *       "status_code": 200,
         *       "request_method": "POST"
         *     }
         */
        WebhookLogEntry: {
            delivery_id: string;
            /** @description of kind message, test and failure */
            webhook_id: string | null;
            /** @description where the last attempt went, or the first one will go; null = nowhere any more */
            url: string | null;
            /** @enum {string} */
            kind: "message" | "status" | "failure" | "sync" | "test";
            event: string | null;
            /** @enum {string} */
            state: "pending" | "delivered" | "failed" | "skipped";
            reason: string | null;
            account_id: string | null;
            message_id: string | null;
            created: number;
            due: number | null;
            finished: number | null;
            attempt_count: number;
            attempts: {
                timestamp: number;
                url: string | null;
                duration_ms: number;
                status_code: number | null;
                error: string | null;
                response: string | null;
            }[];
            /** @description of the last attempt, or of the event while there is none */
            timestamp: number;
            /** @description of the last attempt; null = no answer */
            status_code: number | null;
            /** @constant */
            request_method: "POST";
        };
        /**
         * @example {
         *       "id": "e5f7a9b1c3d5e7f9a1b3c5d7",
         *       "timestamp": 1700000000,
         *       "account_id": "5f3c8a2b9d4e1f6a7b8c9d0e",
         *       "request_method": "GET",
         *       "request_path": "/lite/users/5f3c8a2b9d4e1f6a7b8c9d0e/email_accounts",
         *       "status_code": 200,
         *       "duration_ms": 6
         *     }
         */
        CallLogEntry: {
            id: string;
            timestamp: number;
            account_id: string | null;
            request_method: string;
            request_path: string;
            status_code: number;
            duration_ms: number;
        };
        /**
         * @example {
         *       "id": "5f3c8a2b9d4e1f6a7b8c9d0e",
         *       "username": "anna@example.com",
         *       "created": 1700000000,
         *       "suspended": 0,
         *       "password_expired": 0,
         *       "first_name": "Anna",
         *       "last_name": "Berg",
         *       "email_addresses": [
         *         "anna@example.com"
         *       ],
         *       "sources": [
         *         {
         *           "server": "imap.example.com",
         *           "label": "anna::example",
         *           "username": "anna@example.com",
         *           "port": 993,
         *           "use_ssl": true,
         *           "type": "imap",
         *           "authentication_type": "password",
         *           "status": "OK",
         *           "status_message": null,
         *           "status_callback_url": null,
         *           "sync_flags": true,
         *           "sync_all_folders": false,
         *           "expunge_on_deleted_flag": false,
         *           "raw_file_list": false,
         *           "callback_url": null,
         *           "resource_url": "https://mail.example.com/2.0/accounts/5f3c8a2b9d4e1f6a7b8c9d0e/sources/anna%3A%3Aexample"
         *         }
         *       ],
         *       "nb_messages": 1280,
         *       "nb_files": 96,
         *       "resource_url": "https://mail.example.com/2.0/accounts/5f3c8a2b9d4e1f6a7b8c9d0e"
         *     }
         */
        Account: {
            id: string;
            username: string;
            created: number;
            /** @constant */
            suspended: 0;
            /** @constant */
            password_expired: 0;
            first_name: string;
            last_name: string;
            email_addresses: string[];
            sources: components["schemas"]["Source"][];
            /** @description messages of all sources; absent from connect tokens */
            nb_messages?: number;
            /** @description attachments of all sources, those of raw_file_list too; absent from connect tokens */
            nb_files?: number;
            resource_url: string;
        };
        /**
         * @example {
         *       "server": "imap.example.com",
         *       "label": "anna::example",
         *       "username": "anna@example.com",
         *       "port": 993,
         *       "use_ssl": true,
         *       "type": "imap",
         *       "authentication_type": "password",
         *       "status": "OK",
         *       "status_message": null,
         *       "status_callback_url": null,
         *       "sync_flags": true,
         *       "sync_all_folders": false,
         *       "expunge_on_deleted_flag": false,
         *       "raw_file_list": false,
         *       "callback_url": null,
         *       "resource_url": "https://mail.example.com/2.0/accounts/5f3c8a2b9d4e1f6a7b8c9d0e/sources/anna%3A%3Aexample"
         *     }
         */
        Source: {
            server: string;
            label: string;
            username: string;
            port: number;
            use_ssl: boolean;
            /** @constant */
            type: "imap";
            /** @enum {string} */
            authentication_type: "password" | "oauth2";
            /** @enum {string} */
            status: "OK" | "DISABLED";
            status_message: string | null;
            status_callback_url: string | null;
            sync_flags: boolean;
            sync_all_folders: boolean;
            expunge_on_deleted_flag: boolean;
            raw_file_list: boolean;
            callback_url: string | null;
            resource_url: string;
        };
        /**
         * @example {
         *       "email": "anna@example.com",
         *       "validated": 1700000000,
         *       "primary": 1,
         *       "resource_url": "https://mail.example.com/2.0/accounts/5f3c8a2b9d4e1f6a7b8c9d0e/email_addresses/anna%40example.com"
         *     }
         */
        EmailAddress: {
            email: string;
            /** @description Unix timestamp: when the account was made */
            validated: number;
            /** @description 1 = the first one, which is also its username */
            primary: 0 | 1;
            resource_url: string;
        };
        /**
         * @example {
         *       "token": "k3v9x1m7q2w8e5r4",
         *       "created": 1700000000,
         *       "used": 0,
         *       "expires": 1700086400,
         *       "callback_url": "https://app.example.com/connected",
         *       "email": "anna@example.com",
         *       "first_name": "Anna",
         *       "last_name": "Berg",
         *       "browser_redirect_url": "https://mail.example.com/connect/k3v9x1m7q2w8e5r4",
         *       "source_sync_all_folders": false,
         *       "source_expunge_on_deleted_flag": false,
         *       "source_raw_file_list": false,
         *       "account": [],
         *       "resource_url": "https://mail.example.com/2.0/connect_tokens/k3v9x1m7q2w8e5r4"
         *     }
         * @example {
         *       "token": "k3v9x1m7q2w8e5r4",
         *       "created": 1700000000,
         *       "used": 1700000300,
         *       "expires": false,
         *       "callback_url": "https://app.example.com/connected",
         *       "email": "anna@example.com",
         *       "first_name": "Anna",
         *       "last_name": "Berg",
         *       "browser_redirect_url": "https://mail.example.com/connect/k3v9x1m7q2w8e5r4",
         *       "source_sync_all_folders": false,
         *       "source_expunge_on_deleted_flag": false,
         *       "source_raw_file_list": false,
         *       "account": {
         *         "id": "5f3c8a2b9d4e1f6a7b8c9d0e",
         *         "username": "anna@example.com",
         *         "created": 1700000000,
         *         "suspended": 0,
         *         "password_expired": 0,
         *         "first_name": "Anna",
         *         "last_name": "Berg",
         *         "email_addresses": [
         *           "anna@example.com"
         *         ],
         *         "sources": [
         *           {
         *             "server": "imap.example.com",
         *             "label": "anna::example",
         *             "username": "anna@example.com",
         *             "port": 993,
         *             "use_ssl": true,
         *             "type": "imap",
         *             "authentication_type": "password",
         *             "status": "OK",
         *             "status_message": null,
         *             "status_callback_url": null,
         *             "sync_flags": true,
         *             "sync_all_folders": false,
         *             "expunge_on_deleted_flag": false,
         *             "raw_file_list": false,
         *             "callback_url": null,
         *             "resource_url": "https://mail.example.com/2.0/accounts/5f3c8a2b9d4e1f6a7b8c9d0e/sources/anna%3A%3Aexample"
         *           }
         *         ],
         *         "nb_messages": 1280,
         *         "nb_files": 96,
         *         "resource_url": "https://mail.example.com/2.0/accounts/5f3c8a2b9d4e1f6a7b8c9d0e"
         *       },
         *       "resource_url": "https://mail.example.com/2.0/connect_tokens/k3v9x1m7q2w8e5r4",
         *       "serverLabel": "anna::example"
         *     }
         */
        ConnectToken20: {
            token: string;
            created: number;
            /** @description 0 while unused, else Unix timestamp of use */
            used: number;
            /** @description Unix timestamp while unused; false once used */
            expires: number | false;
            callback_url: string;
            email?: string;
            first_name: string;
            last_name: string;
            status_callback_url?: string;
            browser_redirect_url: string;
            /** @description label of the email account, or source, once there is one */
            serverLabel?: string;
            source_callback_url?: string;
            source_sync_all_folders: boolean;
            source_expunge_on_deleted_flag: boolean;
            source_raw_file_list: boolean;
            /** @description an empty list while the token is unused */
            account: components["schemas"]["Account"] | unknown[];
            resource_url: string;
        };
        /**
         * @example {
         *       "person_info": {
         *         "ben@example.org": {
         *           "thumbnail": "https://secure.gravatar.com/avatar/0c9b3b4a5d6e7f8091a2b3c4d5e6f708?s=50&d=mm"
         *         }
         *       },
         *       "subject": "Hello",
         *       "message_id": "8b1a9953c4611296a827abf8",
         *       "email_message_id": "<20231114.1@example.org>",
         *       "list_headers": [],
         *       "in_reply_to": null,
         *       "references": [],
         *       "received_headers": [
         *         "from mx.example.org by imap.example.com; Tue, 14 Nov 2023 22:13:15 +0000"
         *       ],
         *       "folders": [
         *         "INBOX"
         *       ],
         *       "addresses": {
         *         "from": {
         *           "name": "Ben Lind",
         *           "email": "ben@example.org"
         *         },
         *         "to": [
         *           {
         *             "name": "Anna Berg",
         *             "email": "anna@example.com"
         *           }
         *         ]
         *       },
         *       "date": 1699999990,
         *       "date_received": 1699999995,
         *       "date_indexed": 1700000000,
         *       "files": [
         *         {
         *           "size": 48213,
         *           "type": "application/pdf",
         *           "body_section": "2",
         *           "file_name": "offer.pdf",
         *           "content_disposition": "attachment",
         *           "content_id": null,
         *           "attachment_id": 0,
         *           "x_attachment_id": "",
         *           "encoding": "base64",
         *           "is_embedded": false,
         *           "file_id": "8b1a9953c4611296a827abf8-0",
         *           "file_name_structure": [
         *             [
         *               "offer",
         *               "main"
         *             ],
         *             [
         *               ".pdf",
         *               "ext"
         *             ]
         *           ],
         *           "main_file_name": "offer.pdf",
         *           "resource_url": "https://mail.example.com/2.0/accounts/5f3c8a2b9d4e1f6a7b8c9d0e/files/8b1a9953c4611296a827abf8-0"
         *         }
         *       ],
         *       "body": [
         *         {
         *           "body_section": "1",
         *           "type": "text/plain",
         *           "encoding": "quoted-printable",
         *           "size": 18,
         *           "charset": "utf-8",
         *           "content": "See you on Monday."
         *         }
         *       ],
         *       "flags": {
         *         "seen": true,
         *         "answered": false,
         *         "flagged": false,
         *         "deleted": false,
         *         "draft": false
         *       },
         *       "sources": [
         *         {
         *           "label": "anna::example",
         *           "resource_url": "https://mail.example.com/2.0/accounts/5f3c8a2b9d4e1f6a7b8c9d0e/sources/anna%3A%3Aexample"
         *         }
         *       ],
         *       "resource_url": "https://mail.example.com/2.0/accounts/5f3c8a2b9d4e1f6a7b8c9d0e/messages/8b1a9953c4611296a827abf8"
         *     }
         */
        Message20: {
            person_info: {
                [key: string]: {
                    thumbnail: string;
                };
            } | unknown[];
            subject: string;
            message_id: string;
            email_message_id: string;
            mailhost_message_id?: string;
            mailhost_thread_id?: string;
            gmail_message_id?: string;
            gmail_thread_id?: string;
            list_headers: {
                [key: string]: string;
            } | unknown[];
            in_reply_to: string | null;
            references: string[];
            received_headers: string[];
            folders: string[];
            body_error?: string;
            addresses: {
                from?: {
                    name: string;
                    email: string;
                };
                sender?: {
                    name: string;
                    email: string;
                }[];
                reply_to?: {
                    name: string;
                    email: string;
                }[];
                to?: {
                    name: string;
                    email: string;
                }[];
                cc?: {
                    name: string;
                    email: string;
                }[];
                bcc?: {
                    name: string;
                    email: string;
                }[];
            } | unknown[];
            date: number;
            date_received: number;
            date_indexed: number;
            files: components["schemas"]["MessageFile"][];
            body: components["schemas"]["BodyPart"][];
            /**
             * @example {
             *       "seen": true,
             *       "answered": false,
             *       "flagged": false,
             *       "deleted": false,
             *       "draft": false
             *     }
             */
            flags?: {
                seen: boolean;
                answered: boolean;
                flagged: boolean;
                deleted: boolean;
                draft: boolean;
            };
            thread_size?: number;
            sources?: {
                label: string;
                resource_url: string;
            }[];
            resource_url: string;
        };
        /**
         * @example {
         *       "size": 48213,
         *       "type": "application/pdf",
         *       "body_section": "2",
         *       "file_name": "offer.pdf",
         *       "content_disposition": "attachment",
         *       "content_id": null,
         *       "attachment_id": 0,
         *       "x_attachment_id": "",
         *       "encoding": "base64",
         *       "is_embedded": false,
         *       "file_id": "8b1a9953c4611296a827abf8-0",
         *       "file_name_structure": [
         *         [
         *           "offer",
         *           "main"
         *         ],
         *         [
         *           ".pdf",
         *           "ext"
         *         ]
         *       ],
         *       "main_file_name": "offer.pdf",
         *       "resource_url": "https://mail.example.com/2.0/accounts/5f3c8a2b9d4e1f6a7b8c9d0e/files/8b1a9953c4611296a827abf8-0"
         *     }
         */
        MessageFile: {
            size: number;
            type: string;
            body_section: string;
            file_name: string;
            content_disposition: string;
            content_id: string | null;
            attachment_id: number;
            x_attachment_id: string;
            encoding: string;
            is_embedded: boolean;
            file_id: string;
            /** @description the name in parts, each with its kind: `main`, `boundary`, `numeric`, `date` or `ext` */
            file_name_structure: string[][];
            /** @description the name without what tells its versions apart */
            main_file_name: string;
            resource_url: string;
        };
        /**
         * @example {
         *       "name": "INBOX",
         *       "nb_messages": 1280,
         *       "delimiter": "/",
         *       "symbolic_name": "\\Inbox",
         *       "xlist_name": "\\Inbox",
         *       "nb_unseen_messages": 12,
         *       "delim": "/",
         *       "attributes": {
         *         "HasChildren": false,
         *         "HasNoChildren": true,
         *         "Noinferiors": false,
         *         "Marked": false,
         *         "Noselect": false
         *       },
         *       "resource_url": "https://mail.example.com/2.0/accounts/5f3c8a2b9d4e1f6a7b8c9d0e/sources/anna%3A%3Aexample/folders/INBOX"
         *     }
         */
        SourceFolder: {
            name: string;
            nb_messages: number;
            delimiter: string;
            symbolic_name: string;
            xlist_name: string;
            /** @description with include_extended_counts */
            nb_unseen_messages?: number;
            delim: string;
            attributes: {
                HasChildren: boolean;
                HasNoChildren: boolean;
                Noinferiors: boolean;
                Marked: boolean;
                Noselect: boolean;
            };
            resource_url: string;
        };
        /**
         * @example {
         *       "size": 48213,
         *       "type": "application/pdf",
         *       "body_section": "2",
         *       "file_name": "offer.pdf",
         *       "content_disposition": "attachment",
         *       "content_id": null,
         *       "attachment_id": 0,
         *       "x_attachment_id": "",
         *       "encoding": "base64",
         *       "is_embedded": false,
         *       "file_id": "8b1a9953c4611296a827abf8-0",
         *       "file_name_structure": [
         *         [
         *           "offer",
         *           "main"
         *         ],
         *         [
         *           ".pdf",
         *           "ext"
         *         ]
         *       ],
         *       "main_file_name": "offer.pdf",
         *       "resource_url": "https://mail.example.com/2.0/accounts/5f3c8a2b9d4e1f6a7b8c9d0e/files/8b1a9953c4611296a827abf8-0",
         *       "person_info": {
         *         "ben@example.org": {
         *           "thumbnail": "https://secure.gravatar.com/avatar/0c9b3b4a5d6e7f8091a2b3c4d5e6f708?s=50&d=mm"
         *         }
         *       },
         *       "subject": "Hello",
         *       "message_id": "8b1a9953c4611296a827abf8",
         *       "email_message_id": "<20231114.1@example.org>",
         *       "folders": [
         *         "INBOX"
         *       ],
         *       "addresses": {
         *         "from": {
         *           "name": "Ben Lind",
         *           "email": "ben@example.org"
         *         },
         *         "to": [
         *           {
         *             "name": "Anna Berg",
         *             "email": "anna@example.com"
         *           }
         *         ]
         *       },
         *       "date": 1699999990,
         *       "date_received": 1699999995,
         *       "date_indexed": 1700000000
         *     }
         */
        File: {
            size: number;
            type: string;
            body_section: string;
            file_name: string;
            content_disposition: string;
            content_id: string | null;
            attachment_id: number;
            x_attachment_id: string;
            encoding: string;
            is_embedded: boolean;
            file_id: string;
            /** @description the name in parts, each with its kind: `main`, `boundary`, `numeric`, `date` or `ext` */
            file_name_structure: string[][];
            /** @description the name without what tells its versions apart */
            main_file_name: string;
            resource_url: string;
            person_info: {
                [key: string]: {
                    thumbnail: string;
                };
            } | unknown[];
            subject: string;
            message_id: string;
            email_message_id: string;
            folders: string[];
            mailhost_message_id?: string;
            mailhost_thread_id?: string;
            gmail_message_id?: string;
            gmail_thread_id?: string;
            addresses: {
                from?: {
                    name: string;
                    email: string;
                };
                sender?: {
                    name: string;
                    email: string;
                }[];
                reply_to?: {
                    name: string;
                    email: string;
                }[];
                to?: {
                    name: string;
                    email: string;
                }[];
                cc?: {
                    name: string;
                    email: string;
                }[];
                bcc?: {
                    name: string;
                    email: string;
                }[];
            } | unknown[];
            date: number;
            date_received: number;
            date_indexed: number;
        };
        /**
         * @example {
         *       "person_info": {
         *         "ben@example.org": {
         *           "thumbnail": "https://secure.gravatar.com/avatar/0c9b3b4a5d6e7f8091a2b3c4d5e6f708?s=50&d=mm"
         *         }
         *       },
         *       "subject": "Hello",
         *       "folders": [
         *         "INBOX"
         *       ],
         *       "email_message_ids": [
         *         "<20231114.1@example.org>"
         *       ],
         *       "messages": [
         *         {
         *           "person_info": {
         *             "ben@example.org": {
         *               "thumbnail": "https://secure.gravatar.com/avatar/0c9b3b4a5d6e7f8091a2b3c4d5e6f708?s=50&d=mm"
         *             }
         *           },
         *           "subject": "Hello",
         *           "message_id": "8b1a9953c4611296a827abf8",
         *           "email_message_id": "<20231114.1@example.org>",
         *           "list_headers": [],
         *           "in_reply_to": null,
         *           "references": [],
         *           "received_headers": [
         *             "from mx.example.org by imap.example.com; Tue, 14 Nov 2023 22:13:15 +0000"
         *           ],
         *           "folders": [
         *             "INBOX"
         *           ],
         *           "addresses": {
         *             "from": {
         *               "name": "Ben Lind",
         *               "email": "ben@example.org"
         *             },
         *             "to": [
         *               {
         *                 "name": "Anna Berg",
         *                 "email": "anna@example.com"
         *               }
         *             ]
         *           },
         *           "date": 1699999990,
         *           "date_received": 1699999995,
         *           "date_indexed": 1700000000,
         *           "files": [
         *             {
         *               "size": 48213,
         *               "type": "application/pdf",
         *               "body_section": "2",
         *               "file_name": "offer.pdf",
         *               "content_disposition": "attachment",
         *               "content_id": null,
         *               "attachment_id": 0,
         *               "x_attachment_id": "",
         *               "encoding": "base64",
         *               "is_embedded": false,
         *               "file_id": "8b1a9953c4611296a827abf8-0",
         *               "file_name_structure": [
         *                 [
         *                   "offer",
         *                   "main"
         *                 ],
         *                 [
         *                   ".pdf",
         *                   "ext"
         *                 ]
         *               ],
         *               "main_file_name": "offer.pdf",
         *               "resource_url": "https://mail.example.com/2.0/accounts/5f3c8a2b9d4e1f6a7b8c9d0e/files/8b1a9953c4611296a827abf8-0"
         *             }
         *           ],
         *           "body": [
         *             {
         *               "body_section": "1",
         *               "type": "text/plain",
         *               "encoding": "quoted-printable",
         *               "size": 18,
         *               "charset": "utf-8",
         *               "content": "See you on Monday."
         *             }
         *           ],
         *           "flags": {
         *             "seen": true,
         *             "answered": false,
         *             "flagged": false,
         *             "deleted": false,
         *             "draft": false
         *           },
         *           "sources": [
         *             {
         *               "label": "anna::example",
         *               "resource_url": "https://mail.example.com/2.0/accounts/5f3c8a2b9d4e1f6a7b8c9d0e/sources/anna%3A%3Aexample"
         *             }
         *           ],
         *           "resource_url": "https://mail.example.com/2.0/accounts/5f3c8a2b9d4e1f6a7b8c9d0e/messages/8b1a9953c4611296a827abf8"
         *         }
         *       ],
         *       "resource_url": "https://mail.example.com/2.0/accounts/5f3c8a2b9d4e1f6a7b8c9d0e/threads/4d1f0a7be2c95836"
         *     }
         */
        Thread: {
            person_info: {
                [key: string]: {
                    thumbnail: string;
                };
            } | unknown[];
            subject: string;
            folders: string[];
            mailhost_thread_id?: string;
            gmail_thread_id?: string;
            /** @description of all messages of the thread, oldest first */
            email_message_ids: string[];
            messages: components["schemas"]["Message20"][];
            resource_url: string;
        };
        /**
         * @example {
         *       "email": "ben@example.org",
         *       "name": "Ben Lind",
         *       "total_count": 42,
         *       "direct_count": 12,
         *       "indirect_count": 30,
         *       "last_received": 1700000000,
         *       "service_user_id": "5f3c8a2b9d4e1f6a7b8c9d0e",
         *       "contact_id": "d1e2f3a4b5c6d7e8f9a0b1c2",
         *       "count": 42,
         *       "received_count": 30,
         *       "sent_count": 12,
         *       "thumbnail": "https://secure.gravatar.com/avatar/0c9b3b4a5d6e7f8091a2b3c4d5e6f708?s=50&d=mm",
         *       "resource_url": "https://mail.example.com/2.0/accounts/5f3c8a2b9d4e1f6a7b8c9d0e/contacts/ben%40example.org"
         *     }
         */
        Match: {
            email: string;
            name: string;
            /** @description all messages with the contact: in From, To, Cc or Bcc, received or sent */
            total_count: number;
            /** @description messages received from the contact and replied to */
            direct_count: number;
            /** @description messages received from the contact */
            indirect_count: number;
            /** @description Unix timestamp of the newest message received from the contact; 0 = none was */
            last_received: number;
            service_user_id: string;
            contact_id: string;
            /** @description the same as total_count */
            count: number;
            /** @description the same as indirect_count */
            received_count: number;
            /** @description the others: sent to the contact, or to both of you by somebody else */
            sent_count: number;
            thumbnail: string;
            resource_url: string;
        };
        /**
         * @example {
         *       "email": "ben@example.org",
         *       "name": "Ben Lind",
         *       "total_count": 42,
         *       "direct_count": 12,
         *       "indirect_count": 30,
         *       "last_received": 1700000000,
         *       "service_user_id": "5f3c8a2b9d4e1f6a7b8c9d0e",
         *       "contact_id": "d1e2f3a4b5c6d7e8f9a0b1c2",
         *       "count": 42,
         *       "received_count": 30,
         *       "sent_count": 12,
         *       "thumbnail": "https://secure.gravatar.com/avatar/0c9b3b4a5d6e7f8091a2b3c4d5e6f708?s=50&d=mm",
         *       "resource_url": "https://mail.example.com/2.0/accounts/5f3c8a2b9d4e1f6a7b8c9d0e/contacts/ben%40example.org",
         *       "emails": [
         *         "ben@example.org"
         *       ]
         *     }
         */
        Contact20: {
            email: string;
            name: string;
            /** @description all messages with the contact: in From, To, Cc or Bcc, received or sent */
            total_count: number;
            /** @description messages received from the contact and replied to */
            direct_count: number;
            /** @description messages received from the contact */
            indirect_count: number;
            /** @description Unix timestamp of the newest message received from the contact; 0 = none was */
            last_received: number;
            service_user_id: string;
            contact_id: string;
            /** @description the same as total_count */
            count: number;
            /** @description the same as indirect_count */
            received_count: number;
            /** @description the others: sent to the contact, or to both of you by somebody else */
            sent_count: number;
            thumbnail: string;
            resource_url: string;
            emails: string[];
        };
        /**
         * @example {
         *       "webhook_id": "6a1f3c8b2d9e4f5a7b8c9d0e",
         *       "callback_url": "https://app.example.com/mail",
         *       "active": true,
         *       "failure": false,
         *       "last_success_at": 1700000003,
         *       "filter_from": "*@example.org",
         *       "include_body": true,
         *       "body_type": "text/plain",
         *       "include_header": false,
         *       "receive_all_changes": false,
         *       "receive_drafts": false,
         *       "receive_historical": false
         *     }
         */
        Webhook20: {
            webhook_id: string;
            callback_url: string;
            failure_notif_url?: string;
            /** @description absent = MAILROOM_WEBHOOK_SCHEDULE */
            retry_schedule?: string;
            active: boolean;
            /** @description true from the third failed attempt in a row until the next success */
            failure: boolean;
            /** @description of the last attempt, while attempts fail */
            last_error?: string;
            /** @description Unix timestamp in seconds: the first of the attempts that have all failed since */
            failing_since?: number;
            /** @description Unix timestamp in seconds: it has failed for too long: callbacks wait, and one is tried now and then */
            abandoned_since?: number;
            /** @description Unix timestamp in seconds: no callback is sent before, then the oldest that waits is tried; absent = each callback has its own time */
            retry_at?: number;
            /** @description Unix timestamp in seconds: the last delivered callback; while all goes well, up to a minute late */
            last_success_at?: number;
            filter_to?: string;
            filter_from?: string;
            filter_cc?: string;
            filter_subject?: string;
            filter_thread?: string;
            filter_file_name?: string;
            filter_folder_added?: string;
            filter_folder_removed?: string;
            filter_to_domain?: string;
            filter_from_domain?: string;
            body_search?: string;
            include_body: boolean;
            body_type?: string;
            include_header: boolean;
            /**
             * @description with include_header: how callbacks carry the header; set by include_header=1 or raw
             * @enum {string}
             */
            header_format?: "parsed" | "raw";
            receive_all_changes: boolean;
            receive_drafts: boolean;
            receive_historical: boolean;
        };
        /**
         * @example {
         *       "account_id": "5f3c8a2b9d4e1f6a7b8c9d0e",
         *       "user_id": "5f3c8a2b9d4e1f6a7b8c9d0e",
         *       "webhook_id": "6a1f3c8b2d9e4f5a7b8c9d0e",
         *       "sequence": 1042,
         *       "message_data": {
         *         "message_id": "8b1a9953c4611296a827abf8",
         *         "email_message_id": "<20231114.1@example.org>",
         *         "addresses": {
         *           "from": {
         *             "email": "ben@example.org",
         *             "name": "Ben Lind"
         *           },
         *           "to": [
         *             {
         *               "email": "anna@example.com"
         *             }
         *           ]
         *         },
         *         "person_info": {
         *           "ben@example.org": {
         *             "thumbnail": "https://secure.gravatar.com/avatar/0c9b3b4a5d6e7f8091a2b3c4d5e6f708?s=50&d=mm"
         *           }
         *         },
         *         "references": [],
         *         "subject": "Hello",
         *         "folders": [
         *           "INBOX"
         *         ],
         *         "date": 1699999990,
         *         "date_received": 1699999995,
         *         "bodies": [
         *           {
         *             "type": "text/plain",
         *             "charset": "utf-8",
         *             "body_section": "1",
         *             "content": "See you on Monday.\n"
         *           }
         *         ],
         *         "email_accounts": [
         *           {
         *             "label": "anna::example",
         *             "folder": "INBOX",
         *             "uid": 4711,
         *             "resource_url": "https://mail.example.com/lite/users/5f3c8a2b9d4e1f6a7b8c9d0e/email_accounts/anna%3A%3Aexample"
         *           }
         *         ],
         *         "sources": [
         *           {
         *             "label": "anna::example",
         *             "folder": "INBOX",
         *             "uid": 4711,
         *             "resource_url": "https://mail.example.com/lite/users/5f3c8a2b9d4e1f6a7b8c9d0e/email_accounts/anna%3A%3Aexample"
         *           }
         *         ],
         *         "flags": {
         *           "flagged": false,
         *           "answered": false,
         *           "draft": false,
         *           "seen": false
         *         },
         *         "files": [],
         *         "resource_url": "https://mail.example.com/lite/users/5f3c8a2b9d4e1f6a7b8c9d0e/email_accounts/anna%3A%3Aexample/messages/8b1a9953c4611296a827abf8"
         *       },
         *       "timestamp": 1700000000,
         *       "token": "6f1c0d8e4b7a49325d8c1e0f7a6b3c2d",
         *       "signature": "b5c1f6f0c0a9d2e3b47f6e81d5a2c4938e7f60b1a2c3d4e5f60718293a4b5c6d"
         *     }
         */
        MessageCallback: {
            /** @description id of the user */
            account_id: string;
            /** @description the same as account_id */
            user_id: string;
            webhook_id: string;
            /** @description number of the event in its email account, as in the change log; of live events alone */
            sequence?: number;
            /**
             * @description with receive_all_changes or a filter on folders: what has happened
             * @enum {string}
             */
            event?: "received" | "sent" | "draft" | "folder_added" | "folder_removed" | "flags_changed" | "deleted";
            /**
             * @description of a test callback alone
             * @constant
             */
            test?: true;
            message_data: components["schemas"]["MessageData"];
            /** @description when this attempt was signed: Unix timestamp in seconds */
            timestamp: number;
            /** @description random, for the signature */
            token: string;
            /** @description hex HMAC-SHA256, keyed with the API secret, of the digits of timestamp right followed by token */
            signature: string;
        };
        /**
         * @example {
         *       "message_id": "8b1a9953c4611296a827abf8",
         *       "email_message_id": "<20231114.1@example.org>",
         *       "addresses": {
         *         "from": {
         *           "email": "ben@example.org",
         *           "name": "Ben Lind"
         *         },
         *         "to": [
         *           {
         *             "email": "anna@example.com"
         *           }
         *         ]
         *       },
         *       "person_info": {
         *         "ben@example.org": {
         *           "thumbnail": "https://secure.gravatar.com/avatar/0c9b3b4a5d6e7f8091a2b3c4d5e6f708?s=50&d=mm"
         *         }
         *       },
         *       "references": [],
         *       "subject": "Hello",
         *       "folders": [
         *         "INBOX"
         *       ],
         *       "date": 1699999990,
         *       "date_received": 1699999995,
         *       "bodies": [
         *         {
         *           "type": "text/plain",
         *           "charset": "utf-8",
         *           "body_section": "1",
         *           "content": "See you on Monday.\n"
         *         }
         *       ],
         *       "email_accounts": [
         *         {
         *           "label": "anna::example",
         *           "folder": "INBOX",
         *           "uid": 4711,
         *           "resource_url": "https://mail.example.com/lite/users/5f3c8a2b9d4e1f6a7b8c9d0e/email_accounts/anna%3A%3Aexample"
         *         }
         *       ],
         *       "sources": [
         *         {
         *           "label": "anna::example",
         *           "folder": "INBOX",
         *           "uid": 4711,
         *           "resource_url": "https://mail.example.com/lite/users/5f3c8a2b9d4e1f6a7b8c9d0e/email_accounts/anna%3A%3Aexample"
         *         }
         *       ],
         *       "flags": {
         *         "flagged": false,
         *         "answered": false,
         *         "draft": false,
         *         "seen": false
         *       },
         *       "files": [],
         *       "resource_url": "https://mail.example.com/lite/users/5f3c8a2b9d4e1f6a7b8c9d0e/email_accounts/anna%3A%3Aexample/messages/8b1a9953c4611296a827abf8"
         *     }
         */
        MessageData: {
            /** @description id to ask this API for the message */
            message_id: string;
            /** @description Message-ID, in angle brackets; empty when there is none */
            email_message_id: string;
            /** @description id of the message at a hosted provider */
            mailhost_message_id?: string;
            /** @description id of the thread at a hosted provider */
            mailhost_thread_id?: string;
            /** @description id of the message at a hosted provider */
            gmail_message_id?: string;
            /** @description id of the thread at a hosted provider */
            gmail_thread_id?: string;
            addresses: {
                from?: {
                    email: string;
                    name?: string;
                };
                sender?: {
                    email: string;
                    name?: string;
                }[];
                reply_to?: {
                    email: string;
                    name?: string;
                }[];
                to?: {
                    email: string;
                    name?: string;
                }[];
                cc?: {
                    email: string;
                    name?: string;
                }[];
                bcc?: {
                    email: string;
                    name?: string;
                }[];
                return_path?: {
                    email: string;
                    name?: string;
                }[];
            } | unknown[];
            person_info: {
                [key: string]: {
                    thumbnail: string;
                };
            } | unknown[];
            /** @description Message-IDs of the thread before it */
            references: string[];
            subject: string;
            /** @description right after the event */
            folders: string[];
            /** @description when it was sent: Unix timestamp in seconds */
            date: number;
            /** @description when it came: Unix timestamp in seconds */
            date_received: number;
            bodies: {
                type: string;
                charset: string;
                body_section: string;
                /** @description with include_body: the text, or its beginning; absent when the mail server could not give it */
                content?: string;
                /**
                 * @description the text is longer than this: the callback would be too large
                 * @constant
                 */
                truncated?: true;
                /** @description with truncated: of the whole part, in bytes, as transferred */
                size?: number;
                /** @description with truncated: a GET of this API that answers the whole; see body_section */
                link?: string;
            }[];
            /** @description where it lies, the place of the event first */
            email_accounts: {
                /** @description of the email account */
                label: string;
                folder: string;
                uid: number;
                /** @description the email account */
                resource_url: string;
            }[];
            /** @description the same as email_accounts */
            sources: {
                /** @description of the email account */
                label: string;
                folder: string;
                uid: number;
                /** @description the email account */
                resource_url: string;
            }[];
            /**
             * @example {
             *       "flagged": false,
             *       "answered": false,
             *       "draft": false,
             *       "seen": false
             *     }
             */
            flags: {
                flagged: boolean;
                answered: boolean;
                draft: boolean;
                seen: boolean;
            };
            /** @description attachments */
            files: {
                /** @description in bytes, as transferred */
                size: number;
                type: string;
                file_name: string;
                /** @description the pieces of the file name, each with its kind: main, boundary, numeric, date or ext */
                file_name_structure: string[][];
                main_file_name: string;
                body_section: string;
                file_id: string;
                attachment_id: number;
                is_embedded: boolean;
                content_disposition: string;
                content_id: string | null;
            }[];
            /**
             * @description with receive_all_changes: whether this is the first event of the message
             * @enum {string}
             */
            message_type?: "created" | "updated";
            /**
             * @description something that was asked for was left out or cut: read it at resource_url
             * @constant
             */
            truncated?: true;
            /** @description the message */
            resource_url: string;
        };
        /**
         * @example {
         *       "account_id": "5f3c8a2b9d4e1f6a7b8c9d0e",
         *       "user_id": "5f3c8a2b9d4e1f6a7b8c9d0e",
         *       "server_label": "anna::example",
         *       "email_account": "anna@example.com",
         *       "failure": "permanent",
         *       "failure_message": "the mail server rejects the username or the password",
         *       "timestamp": 1700000000,
         *       "token": "6f1c0d8e4b7a49325d8c1e0f7a6b3c2d",
         *       "signature": "b5c1f6f0c0a9d2e3b47f6e81d5a2c4938e7f60b1a2c3d4e5f60718293a4b5c6d"
         *     }
         */
        StatusCallback: {
            /** @description id of the user */
            account_id: string;
            /** @description the same as account_id */
            user_id: string;
            /** @description label of the email account */
            server_label: string;
            /** @description its email address */
            email_account: string;
            /**
             * @description `permanent` = it is DISABLED now, `cleared` = it is OK again
             * @enum {string}
             */
            failure: "permanent" | "cleared";
            /** @description why, in words; may be empty */
            failure_message: string;
            /** @description when this attempt was signed: Unix timestamp in seconds */
            timestamp: number;
            /** @description random, for the signature */
            token: string;
            /** @description hex HMAC-SHA256, keyed with the API secret, of the digits of timestamp right followed by token */
            signature: string;
        };
        /**
         * @example {
         *       "account_id": "5f3c8a2b9d4e1f6a7b8c9d0e",
         *       "user_id": "5f3c8a2b9d4e1f6a7b8c9d0e",
         *       "webhook_id": "6a1f3c8b2d9e4f5a7b8c9d0e",
         *       "data": "HTTP 503",
         *       "timestamp": 1700000000,
         *       "token": "6f1c0d8e4b7a49325d8c1e0f7a6b3c2d",
         *       "signature": "b5c1f6f0c0a9d2e3b47f6e81d5a2c4938e7f60b1a2c3d4e5f60718293a4b5c6d"
         *     }
         */
        FailureNotification: {
            /** @description id of the user */
            account_id?: string;
            /** @description the same as account_id */
            user_id?: string;
            webhook_id: string;
            /** @description why, in words */
            data: string;
            /** @description when this attempt was signed: Unix timestamp in seconds */
            timestamp: number;
            /** @description random, for the signature */
            token: string;
            /** @description hex HMAC-SHA256, keyed with the API secret, of the digits of timestamp right followed by token */
            signature: string;
        };
        /**
         * @example {
         *       "account_id": "5f3c8a2b9d4e1f6a7b8c9d0e",
         *       "user_id": "5f3c8a2b9d4e1f6a7b8c9d0e",
         *       "server_label": "anna::example",
         *       "email_account": "anna@example.com",
         *       "sync": "completed",
         *       "timestamp": 1700000000,
         *       "token": "6f1c0d8e4b7a49325d8c1e0f7a6b3c2d",
         *       "signature": "b5c1f6f0c0a9d2e3b47f6e81d5a2c4938e7f60b1a2c3d4e5f60718293a4b5c6d"
         *     }
         */
        SyncCallback: {
            /** @description id of the user */
            account_id: string;
            /** @description the same as account_id */
            user_id: string;
            /** @description label of the email account */
            server_label: string;
            /** @description its email address */
            email_account: string;
            /** @constant */
            sync: "completed";
            /** @description when this attempt was signed: Unix timestamp in seconds */
            timestamp: number;
            /** @description random, for the signature */
            token: string;
            /** @description hex HMAC-SHA256, keyed with the API secret, of the digits of timestamp right followed by token */
            signature: string;
        };
    };
    responses: {
        /** @description Bad Request */
        400: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Unauthorized */
        401: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Forbidden */
        403: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Not Found */
        404: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Conflict */
        409: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Payload Too Large */
        413: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Too Many Requests */
        429: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Request Header Fields Too Large */
        431: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Internal Server Error */
        500: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Service Unavailable */
        503: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description Gateway Timeout */
        504: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    getLiteUsers: {
        parameters: {
            query?: {
                /** @description only users with this email address */
                email?: string;
                /** @description only with an email account of this status */
                status?: "OK" | "DISABLED";
                /** @description the same as a flag: 1 = OK, 0 = DISABLED; `status` goes before it */
                status_ok?: 0 | 1;
                /** @description most entries of one answer */
                limit?: number;
                /** @description entries to pass over, from the first of the list */
                offset?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["User"][];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    postLiteUsers: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * Format: email
                     * @description address of the mailbox. A new email account takes email, server, username, use_ssl and port together, and a password or both provider_* parameters.
                     * @example anna@example.com
                     */
                    email?: string;
                    /**
                     * @description host name or IP address of the IMAP server
                     * @example imap.example.com
                     */
                    server?: string;
                    /**
                     * @description login name on the IMAP server, often the address
                     * @example anna@example.com
                     */
                    username?: string;
                    /**
                     * @description 1 = TLS from the first byte, usually port 993; 0 = STARTTLS, usually port 143: a public server has to offer it
                     * @example 1
                     * @enum {integer}
                     */
                    use_ssl?: 0 | 1;
                    /**
                     * @description TCP port of the IMAP server
                     * @example 993
                     */
                    port?: number;
                    /**
                     * @description protocol of the mailbox: `imap` is the only one, and the default
                     * @example imap
                     * @enum {string}
                     */
                    type?: "imap";
                    /**
                     * @description password of the mailbox, often an app password; ignored when provider_* are set
                     * @example app-password
                     */
                    password?: string;
                    /**
                     * @description OAuth 2.0 refresh token of the mailbox, instead of a password; together with provider_consumer_key
                     * @example 1//0gRefreshToken
                     */
                    provider_refresh_token?: string;
                    /**
                     * @description consumer key of a registered OAuth provider; together with provider_refresh_token
                     * @example my-consumer-key
                     */
                    provider_consumer_key?: string;
                    /**
                     * @description takes the status callbacks of this email account, instead of the application’s URL; empty removes it. When the user has one, a new email account that names none takes it over
                     * @example https://app.example.com/status
                     */
                    status_callback_url?: string;
                    /**
                     * @description first name of the user; empty removes it
                     * @example Anna
                     */
                    first_name?: string;
                    /**
                     * @description last name of the user; empty removes it
                     * @example Berg
                     */
                    last_name?: string;
                    /**
                     * @description id of a 2.0 account that becomes a user as it is; no mailbox parameter is needed with it
                     * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                     */
                    migrate_account_id?: string;
                };
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                        /**
                         * @description why the login failed: `invalid_credentials` = wrong username or password; `auth_unavailable` = the server cannot check passwords at the moment; `consent_lost` = the OAuth grant was taken back or has expired; `permission` = the server does not let this login use IMAP, or offers no login method that fits; `throttled` = too many logins or too much traffic: try again later; `connection_limit` = too many connections to this mailbox; `network` = the connection broke; `tls` = TLS could not be agreed on, or the certificate is not valid; `protocol` = what answers there does not speak IMAP; `timeout` = no answer in time; `connection_refused` = nothing listens on this port; `host_not_found` = there is no host of this name; `private_address` = the host has no public address
                         * @enum {string}
                         */
                        feedback_code?: "invalid_credentials" | "auth_unavailable" | "consent_lost" | "permission" | "throttled" | "connection_limit" | "network" | "tls" | "protocol" | "timeout" | "connection_refused" | "host_not_found" | "private_address";
                        /** @description the same in words */
                        feedback?: string;
                        /** @description lines of the IMAP session, secrets masked */
                        connection_log?: string;
                        /** @description the same as connection_log */
                        connectionLog?: string;
                        id?: string;
                        resource_url?: string;
                        source?: {
                            label: string;
                            resource_url: string;
                        };
                        email_account?: {
                            label: string;
                            resource_url: string;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersId: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["User"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    putLiteUsersId: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * @description first name of the user; empty removes it
                     * @example Anna
                     */
                    first_name?: string;
                    /**
                     * @description last name of the user; empty removes it
                     * @example Berg
                     */
                    last_name?: string;
                    /**
                     * @description takes the status callbacks of email accounts that are added later and name none; those that are there keep theirs. Empty removes it
                     * @example https://app.example.com/status
                     */
                    status_callback_url?: string;
                };
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                        resource_url: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    postLiteUsersId: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * @description first name of the user; empty removes it
                     * @example Anna
                     */
                    first_name?: string;
                    /**
                     * @description last name of the user; empty removes it
                     * @example Berg
                     */
                    last_name?: string;
                    /**
                     * @description takes the status callbacks of email accounts that are added later and name none; those that are there keep theirs. Empty removes it
                     * @example https://app.example.com/status
                     */
                    status_callback_url?: string;
                };
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                        resource_url: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    deleteLiteUsersId: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdEmailAccounts: {
        parameters: {
            query?: {
                /** @description only with an email account of this status */
                status?: "OK" | "DISABLED";
                /** @description the same as a flag: 1 = OK, 0 = DISABLED; `status` goes before it */
                status_ok?: 0 | 1;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmailAccount"][];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    postLiteUsersIdEmailAccounts: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * Format: email
                     * @description address of the mailbox. A new email account takes email, server, username, use_ssl and port together, and a password or both provider_* parameters.
                     * @example anna@example.com
                     */
                    email?: string;
                    /**
                     * @description host name or IP address of the IMAP server
                     * @example imap.example.com
                     */
                    server?: string;
                    /**
                     * @description login name on the IMAP server, often the address
                     * @example anna@example.com
                     */
                    username?: string;
                    /**
                     * @description 1 = TLS from the first byte, usually port 993; 0 = STARTTLS, usually port 143: a public server has to offer it
                     * @example 1
                     * @enum {integer}
                     */
                    use_ssl?: 0 | 1;
                    /**
                     * @description TCP port of the IMAP server
                     * @example 993
                     */
                    port?: number;
                    /**
                     * @description protocol of the mailbox: `imap` is the only one, and the default
                     * @example imap
                     * @enum {string}
                     */
                    type?: "imap";
                    /**
                     * @description password of the mailbox, often an app password; ignored when provider_* are set
                     * @example app-password
                     */
                    password?: string;
                    /**
                     * @description OAuth 2.0 refresh token of the mailbox, instead of a password; together with provider_consumer_key
                     * @example 1//0gRefreshToken
                     */
                    provider_refresh_token?: string;
                    /**
                     * @description consumer key of a registered OAuth provider; together with provider_refresh_token
                     * @example my-consumer-key
                     */
                    provider_consumer_key?: string;
                    /**
                     * @description takes the status callbacks of this email account, instead of the application’s URL; empty removes it. When the user has one, a new email account that names none takes it over
                     * @example https://app.example.com/status
                     */
                    status_callback_url?: string;
                };
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                        /**
                         * @description why the login failed: `invalid_credentials` = wrong username or password; `auth_unavailable` = the server cannot check passwords at the moment; `consent_lost` = the OAuth grant was taken back or has expired; `permission` = the server does not let this login use IMAP, or offers no login method that fits; `throttled` = too many logins or too much traffic: try again later; `connection_limit` = too many connections to this mailbox; `network` = the connection broke; `tls` = TLS could not be agreed on, or the certificate is not valid; `protocol` = what answers there does not speak IMAP; `timeout` = no answer in time; `connection_refused` = nothing listens on this port; `host_not_found` = there is no host of this name; `private_address` = the host has no public address
                         * @enum {string}
                         */
                        feedback_code?: "invalid_credentials" | "auth_unavailable" | "consent_lost" | "permission" | "throttled" | "connection_limit" | "network" | "tls" | "protocol" | "timeout" | "connection_refused" | "host_not_found" | "private_address";
                        /** @description the same in words */
                        feedback?: string;
                        /** @description lines of the IMAP session, secrets masked */
                        connection_log?: string;
                        /** @description the same as connection_log */
                        connectionLog?: string;
                        status?: string;
                        label?: string;
                        resource_url?: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdEmailAccountsLabel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmailAccount"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    postLiteUsersIdEmailAccountsLabel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * Format: email
                     * @description address of the mailbox. A new email account takes email, server, username, use_ssl and port together, and a password or both provider_* parameters.
                     * @example anna@example.com
                     */
                    email?: string;
                    /**
                     * @description host name or IP address of the IMAP server
                     * @example imap.example.com
                     */
                    server?: string;
                    /**
                     * @description login name on the IMAP server, often the address
                     * @example anna@example.com
                     */
                    username?: string;
                    /**
                     * @description 1 = TLS from the first byte, usually port 993; 0 = STARTTLS, usually port 143: a public server has to offer it
                     * @example 1
                     * @enum {integer}
                     */
                    use_ssl?: 0 | 1;
                    /**
                     * @description TCP port of the IMAP server
                     * @example 993
                     */
                    port?: number;
                    /**
                     * @description protocol of the mailbox: `imap` is the only one, and the default
                     * @example imap
                     * @enum {string}
                     */
                    type?: "imap";
                    /**
                     * @description password of the mailbox, often an app password; ignored when provider_* are set
                     * @example app-password
                     */
                    password?: string;
                    /**
                     * @description OAuth 2.0 refresh token of the mailbox, instead of a password; together with provider_consumer_key
                     * @example 1//0gRefreshToken
                     */
                    provider_refresh_token?: string;
                    /**
                     * @description consumer key of a registered OAuth provider; together with provider_refresh_token
                     * @example my-consumer-key
                     */
                    provider_consumer_key?: string;
                    /**
                     * @description takes the status callbacks of this email account, instead of the application’s URL; empty removes it. When the user has one, a new email account that names none takes it over
                     * @example https://app.example.com/status
                     */
                    status_callback_url?: string;
                    /**
                     * @description 1 = forget a DISABLED state and connect anew
                     * @enum {integer}
                     */
                    status?: 1;
                    /**
                     * @description 1 = log in now, and answer what the status is since and why
                     * @enum {integer}
                     */
                    force_status_check?: 0 | 1;
                };
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                        /**
                         * @description why the login failed: `invalid_credentials` = wrong username or password; `auth_unavailable` = the server cannot check passwords at the moment; `consent_lost` = the OAuth grant was taken back or has expired; `permission` = the server does not let this login use IMAP, or offers no login method that fits; `throttled` = too many logins or too much traffic: try again later; `connection_limit` = too many connections to this mailbox; `network` = the connection broke; `tls` = TLS could not be agreed on, or the certificate is not valid; `protocol` = what answers there does not speak IMAP; `timeout` = no answer in time; `connection_refused` = nothing listens on this port; `host_not_found` = there is no host of this name; `private_address` = the host has no public address
                         * @enum {string}
                         */
                        feedback_code?: "invalid_credentials" | "auth_unavailable" | "consent_lost" | "permission" | "throttled" | "connection_limit" | "network" | "tls" | "protocol" | "timeout" | "connection_refused" | "host_not_found" | "private_address";
                        /** @description the same in words */
                        feedback?: string;
                        /** @description lines of the IMAP session, secrets masked */
                        connection_log?: string;
                        /** @description the same as connection_log */
                        connectionLog?: string;
                        status?: string;
                        label?: string;
                        resource_url?: string;
                        status_message?: string | null;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    deleteLiteUsersIdEmailAccountsLabel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdEmailAccountsLabelFolders: {
        parameters: {
            query?: {
                /** @description 1 = only the names, without counts */
                include_names_only?: 0 | 1;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": (components["schemas"]["Folder"] | {
                        name: string;
                    })[];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdEmailAccountsLabelFoldersFolder: {
        parameters: {
            query?: {
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description full path of the folder; slashes may be sent raw or as %2F
                 * @example INBOX
                 */
                folder: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Folder"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    postLiteUsersIdEmailAccountsLabelFoldersFolder: {
        parameters: {
            query?: {
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example Projects/2024
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example Projects/2024
                 */
                label: string;
                /**
                 * @description full path of the folder; slashes may be sent raw or as %2F
                 * @example Projects/2024
                 */
                folder: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                        resource_url: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdEmailAccountsLabelMessages: {
        parameters: {
            query?: {
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
                /** @description only messages whose subject holds this text, in upper or lower case */
                subject?: string;
                /** @description only messages with one of these email addresses in any of From, To, Cc and Bcc */
                email?: string;
                /** @description only messages with one of these email addresses in To */
                to?: string;
                /** @description only messages with one of these email addresses in From */
                from?: string;
                /** @description only messages with one of these email addresses in Cc */
                cc?: string;
                /** @description only messages with one of these email addresses in Bcc */
                bcc?: string;
                /** @description only messages sent at this time or before: Unix timestamp in seconds */
                date_before?: number;
                /** @description only messages sent at this time or after: Unix timestamp in seconds */
                date_after?: number;
                /** @description 1 = with the content of the text parts in `bodies` */
                include_body?: 0 | 1;
                /** @description 1 = with the header fields, decoded, by lower-case name; `raw` = as they are in the message */
                include_headers?: "0" | "1" | "raw";
                /** @description 1 = with the IMAP flags */
                include_flags?: 0 | 1;
                /** @description with include_body: only body parts of this MIME type; absent = every text part */
                body_type?: string;
                /** @description only messages whose body holds this text; the mail server searches */
                body_search_string?: string;
                /** @description by the time of sending: `desc` (the default) = newest first, `asc` = oldest first */
                sort_order?: "asc" | "desc";
                /** @description most entries of one answer */
                limit?: number;
                /** @description messages to pass over. Newest first, mail that arrives between two pages moves the rest down, so that rows come again: to read all of a mailbox take sort_order=asc, or keep date_before at the time of the first page */
                offset?: number;
                /** @description only messages in this folder, by its full path; absent = all folders */
                folder?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Message"][];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdEmailAccountsLabelFoldersFolderMessages: {
        parameters: {
            query?: {
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
                /** @description only messages whose subject holds this text, in upper or lower case */
                subject?: string;
                /** @description only messages with one of these email addresses in any of From, To, Cc and Bcc */
                email?: string;
                /** @description only messages with one of these email addresses in To */
                to?: string;
                /** @description only messages with one of these email addresses in From */
                from?: string;
                /** @description only messages with one of these email addresses in Cc */
                cc?: string;
                /** @description only messages with one of these email addresses in Bcc */
                bcc?: string;
                /** @description only messages sent at this time or before: Unix timestamp in seconds */
                date_before?: number;
                /** @description only messages sent at this time or after: Unix timestamp in seconds */
                date_after?: number;
                /** @description 1 = with the content of the text parts in `bodies` */
                include_body?: 0 | 1;
                /** @description 1 = with the header fields, decoded, by lower-case name; `raw` = as they are in the message */
                include_headers?: "0" | "1" | "raw";
                /** @description 1 = with the IMAP flags */
                include_flags?: 0 | 1;
                /** @description with include_body: only body parts of this MIME type; absent = every text part */
                body_type?: string;
                /** @description only messages whose body holds this text; the mail server searches */
                body_search_string?: string;
                /** @description by the time of sending: `desc` (the default) = newest first, `asc` = oldest first */
                sort_order?: "asc" | "desc";
                /** @description most entries of one answer */
                limit?: number;
                /** @description messages to pass over. Newest first, mail that arrives between two pages moves the rest down, so that rows come again: to read all of a mailbox take sort_order=asc, or keep date_before at the time of the first page */
                offset?: number;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description full path of the folder; slashes may be sent raw or as %2F
                 * @example INBOX
                 */
                folder: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Message"][];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdEmailAccountsLabelMessagesMessageId: {
        parameters: {
            query?: {
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
                /** @description 1 = with the content of the text parts in `bodies` */
                include_body?: 0 | 1;
                /** @description 1 = with the header fields, decoded, by lower-case name; `raw` = as they are in the message */
                include_headers?: "0" | "1" | "raw";
                /** @description 1 = with the IMAP flags */
                include_flags?: 0 | 1;
                /** @description with include_body: only body parts of this MIME type; absent = every text part */
                body_type?: string;
                /** @description only messages whose body holds this text; the mail server searches */
                body_search_string?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description id of the message, its Message-ID, or the hosted provider’s id
                 * @example 8b1a9953c4611296a827abf8
                 */
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Message"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    putLiteUsersIdEmailAccountsLabelMessagesMessageId: {
        parameters: {
            query: {
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
                /** @description full path of the folder to move it to */
                new_folder_id: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description id of the message, its Message-ID, or the hosted provider’s id
                 * @example 8b1a9953c4611296a827abf8
                 */
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdEmailAccountsLabelFoldersFolderMessagesMessageId: {
        parameters: {
            query?: {
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
                /** @description 1 = with the content of the text parts in `bodies` */
                include_body?: 0 | 1;
                /** @description 1 = with the header fields, decoded, by lower-case name; `raw` = as they are in the message */
                include_headers?: "0" | "1" | "raw";
                /** @description 1 = with the IMAP flags */
                include_flags?: 0 | 1;
                /** @description with include_body: only body parts of this MIME type; absent = every text part */
                body_type?: string;
                /** @description only messages whose body holds this text; the mail server searches */
                body_search_string?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description full path of the folder; slashes may be sent raw or as %2F
                 * @example INBOX
                 */
                folder: string;
                /**
                 * @description id of the message, its Message-ID, or the hosted provider’s id
                 * @example 8b1a9953c4611296a827abf8
                 */
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Message"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    putLiteUsersIdEmailAccountsLabelFoldersFolderMessagesMessageId: {
        parameters: {
            query: {
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
                /** @description full path of the folder to move it to */
                new_folder_id: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description full path of the folder; slashes may be sent raw or as %2F
                 * @example INBOX
                 */
                folder: string;
                /**
                 * @description id of the message, its Message-ID, or the hosted provider’s id
                 * @example 8b1a9953c4611296a827abf8
                 */
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdEmailAccountsLabelMessagesMessageIdBody: {
        parameters: {
            query?: {
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
                /** @description only body parts of this MIME type; absent = every text part */
                type?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description id of the message, its Message-ID, or the hosted provider’s id
                 * @example 8b1a9953c4611296a827abf8
                 */
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        resource_url: string;
                        bodies: components["schemas"]["BodyPart"][];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdEmailAccountsLabelFoldersFolderMessagesMessageIdBody: {
        parameters: {
            query?: {
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
                /** @description only body parts of this MIME type; absent = every text part */
                type?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description full path of the folder; slashes may be sent raw or as %2F
                 * @example INBOX
                 */
                folder: string;
                /**
                 * @description id of the message, its Message-ID, or the hosted provider’s id
                 * @example 8b1a9953c4611296a827abf8
                 */
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        resource_url: string;
                        bodies: components["schemas"]["BodyPart"][];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdEmailAccountsLabelMessagesMessageIdHeaders: {
        parameters: {
            query?: {
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
                /** @description 1 = the header block as one text, as it is in the message; 0 = decoded, by lower-case name */
                raw?: 0 | 1;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description id of the message, its Message-ID, or the hosted provider’s id
                 * @example 8b1a9953c4611296a827abf8
                 */
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        resource_url: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdEmailAccountsLabelFoldersFolderMessagesMessageIdHeaders: {
        parameters: {
            query?: {
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
                /** @description 1 = the header block as one text, as it is in the message; 0 = decoded, by lower-case name */
                raw?: 0 | 1;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description full path of the folder; slashes may be sent raw or as %2F
                 * @example INBOX
                 */
                folder: string;
                /**
                 * @description id of the message, its Message-ID, or the hosted provider’s id
                 * @example 8b1a9953c4611296a827abf8
                 */
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        resource_url: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdEmailAccountsLabelMessagesMessageIdRaw: {
        parameters: {
            query?: {
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description id of the message, its Message-ID, or the hosted provider’s id
                 * @example 8b1a9953c4611296a827abf8
                 */
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "*/*": unknown;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdEmailAccountsLabelFoldersFolderMessagesMessageIdRaw: {
        parameters: {
            query?: {
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description full path of the folder; slashes may be sent raw or as %2F
                 * @example INBOX
                 */
                folder: string;
                /**
                 * @description id of the message, its Message-ID, or the hosted provider’s id
                 * @example 8b1a9953c4611296a827abf8
                 */
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "*/*": unknown;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdEmailAccountsLabelMessagesMessageIdAttachments: {
        parameters: {
            query?: {
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description id of the message, its Message-ID, or the hosted provider’s id
                 * @example 8b1a9953c4611296a827abf8
                 */
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Attachment"][];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdEmailAccountsLabelFoldersFolderMessagesMessageIdAttachments: {
        parameters: {
            query?: {
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description full path of the folder; slashes may be sent raw or as %2F
                 * @example INBOX
                 */
                folder: string;
                /**
                 * @description id of the message, its Message-ID, or the hosted provider’s id
                 * @example 8b1a9953c4611296a827abf8
                 */
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Attachment"][];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdEmailAccountsLabelMessagesMessageIdAttachmentsAttachmentId: {
        parameters: {
            query?: {
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
                /** @description 1 = answer a signed link to the file, good for 15 minutes without a key, instead of the bytes */
                as_link?: 0 | 1;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description id of the message, its Message-ID, or the hosted provider’s id
                 * @example 8b1a9953c4611296a827abf8
                 */
                message_id: string;
                /**
                 * @description index of the attachment in its message, from 0
                 * @example 0
                 */
                attachment_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "*/*": unknown;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdEmailAccountsLabelFoldersFolderMessagesMessageIdAttachmentsAttachmentId: {
        parameters: {
            query?: {
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
                /** @description 1 = answer a signed link to the file, good for 15 minutes without a key, instead of the bytes */
                as_link?: 0 | 1;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description full path of the folder; slashes may be sent raw or as %2F
                 * @example INBOX
                 */
                folder: string;
                /**
                 * @description id of the message, its Message-ID, or the hosted provider’s id
                 * @example 8b1a9953c4611296a827abf8
                 */
                message_id: string;
                /**
                 * @description index of the attachment in its message, from 0
                 * @example 0
                 */
                attachment_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "*/*": unknown;
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getDownloadsAccountMessageAttachment: {
        parameters: {
            query: {
                /** @description end of the link, as it has it: Unix timestamp in seconds */
                expires: number;
                /** @description of the whole link, as it has it */
                signature: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the email account
                 * @example 7d2e9f1a4b6c8d0e3f5a7b9c
                 */
                account: string;
                /**
                 * @description id of the message
                 * @example 8b1a9953c4611296a827abf8
                 */
                message: string;
                /**
                 * @description index of the attachment in its message, from 0
                 * @example 0
                 */
                attachment: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "*/*": unknown;
                };
            };
            400: components["responses"]["400"];
            403: components["responses"]["403"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdEmailAccountsLabelMessagesMessageIdFlags: {
        parameters: {
            query?: {
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description id of the message, its Message-ID, or the hosted provider’s id
                 * @example 8b1a9953c4611296a827abf8
                 */
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        resource_url: string;
                        /**
                         * @example {
                         *       "read": true,
                         *       "answered": false,
                         *       "flagged": false,
                         *       "draft": false,
                         *       "raw": [
                         *         "\\Seen"
                         *       ]
                         *     }
                         */
                        flags: {
                            read: boolean;
                            answered: boolean;
                            flagged: boolean;
                            draft: boolean;
                            raw: string[];
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    postLiteUsersIdEmailAccountsLabelMessagesMessageIdFlags: {
        parameters: {
            query?: {
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description id of the message, its Message-ID, or the hosted provider’s id
                 * @example 8b1a9953c4611296a827abf8
                 */
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * @description 1 sets the IMAP flag \Seen, 0 unsets it; absent leaves it. At least one flag is required
                     * @enum {integer}
                     */
                    seen?: 0 | 1;
                    /**
                     * @description 1 sets the IMAP flag \Answered, 0 unsets it; absent leaves it. At least one flag is required
                     * @enum {integer}
                     */
                    answered?: 0 | 1;
                    /**
                     * @description 1 sets the IMAP flag \Flagged, 0 unsets it; absent leaves it. At least one flag is required
                     * @enum {integer}
                     */
                    flagged?: 0 | 1;
                    /**
                     * @description 1 sets the IMAP flag \Deleted, 0 unsets it; absent leaves it. At least one flag is required
                     * @enum {integer}
                     */
                    deleted?: 0 | 1;
                    /**
                     * @description 1 sets the IMAP flag \Draft, 0 unsets it; absent leaves it. At least one flag is required
                     * @enum {integer}
                     */
                    draft?: 0 | 1;
                };
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                        /**
                         * @example {
                         *       "read": true,
                         *       "answered": false,
                         *       "flagged": false,
                         *       "deleted": false,
                         *       "draft": false
                         *     }
                         */
                        flags: {
                            read: boolean;
                            answered: boolean;
                            flagged: boolean;
                            deleted: boolean;
                            draft: boolean;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdEmailAccountsLabelFoldersFolderMessagesMessageIdFlags: {
        parameters: {
            query?: {
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description full path of the folder; slashes may be sent raw or as %2F
                 * @example INBOX
                 */
                folder: string;
                /**
                 * @description id of the message, its Message-ID, or the hosted provider’s id
                 * @example 8b1a9953c4611296a827abf8
                 */
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        resource_url: string;
                        /**
                         * @example {
                         *       "read": true,
                         *       "answered": false,
                         *       "flagged": false,
                         *       "draft": false,
                         *       "raw": [
                         *         "\\Seen"
                         *       ]
                         *     }
                         */
                        flags: {
                            read: boolean;
                            answered: boolean;
                            flagged: boolean;
                            draft: boolean;
                            raw: string[];
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    postLiteUsersIdEmailAccountsLabelFoldersFolderMessagesMessageIdFlags: {
        parameters: {
            query?: {
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description full path of the folder; slashes may be sent raw or as %2F
                 * @example INBOX
                 */
                folder: string;
                /**
                 * @description id of the message, its Message-ID, or the hosted provider’s id
                 * @example 8b1a9953c4611296a827abf8
                 */
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * @description 1 sets the IMAP flag \Seen, 0 unsets it; absent leaves it. At least one flag is required
                     * @enum {integer}
                     */
                    seen?: 0 | 1;
                    /**
                     * @description 1 sets the IMAP flag \Answered, 0 unsets it; absent leaves it. At least one flag is required
                     * @enum {integer}
                     */
                    answered?: 0 | 1;
                    /**
                     * @description 1 sets the IMAP flag \Flagged, 0 unsets it; absent leaves it. At least one flag is required
                     * @enum {integer}
                     */
                    flagged?: 0 | 1;
                    /**
                     * @description 1 sets the IMAP flag \Deleted, 0 unsets it; absent leaves it. At least one flag is required
                     * @enum {integer}
                     */
                    deleted?: 0 | 1;
                    /**
                     * @description 1 sets the IMAP flag \Draft, 0 unsets it; absent leaves it. At least one flag is required
                     * @enum {integer}
                     */
                    draft?: 0 | 1;
                };
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                        /**
                         * @example {
                         *       "read": true,
                         *       "answered": false,
                         *       "flagged": false,
                         *       "deleted": false,
                         *       "draft": false
                         *     }
                         */
                        flags: {
                            read: boolean;
                            answered: boolean;
                            flagged: boolean;
                            deleted: boolean;
                            draft: boolean;
                        };
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    postLiteUsersIdEmailAccountsLabelMessagesMessageIdRead: {
        parameters: {
            query?: {
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description id of the message, its Message-ID, or the hosted provider’s id
                 * @example 8b1a9953c4611296a827abf8
                 */
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    deleteLiteUsersIdEmailAccountsLabelMessagesMessageIdRead: {
        parameters: {
            query?: {
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description id of the message, its Message-ID, or the hosted provider’s id
                 * @example 8b1a9953c4611296a827abf8
                 */
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    postLiteUsersIdEmailAccountsLabelFoldersFolderMessagesMessageIdRead: {
        parameters: {
            query?: {
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description full path of the folder; slashes may be sent raw or as %2F
                 * @example INBOX
                 */
                folder: string;
                /**
                 * @description id of the message, its Message-ID, or the hosted provider’s id
                 * @example 8b1a9953c4611296a827abf8
                 */
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    deleteLiteUsersIdEmailAccountsLabelFoldersFolderMessagesMessageIdRead: {
        parameters: {
            query?: {
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description full path of the folder; slashes may be sent raw or as %2F
                 * @example INBOX
                 */
                folder: string;
                /**
                 * @description id of the message, its Message-ID, or the hosted provider’s id
                 * @example 8b1a9953c4611296a827abf8
                 */
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdWebhooks: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"][];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    postLiteUsersIdWebhooks: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * Format: uri
                     * @description takes the callbacks: POST with a JSON body, to be answered 200 at once
                     * @example https://app.example.com/mail
                     */
                    callback_url: string;
                    /**
                     * @description takes one failure notification each time that the webhook’s `failure` becomes true; empty removes it
                     * @example https://app.example.com/webhook-failed
                     */
                    failure_notif_url?: string;
                    /** @description Waits between the attempts of a callback, instead of MAILROOM_WEBHOOK_SCHEDULE: a comma list such as 5s,5m,30m,2h of at most 20, each from 1s to 7d. One attempt more than waits. */
                    retry_schedule?: string;
                    /**
                     * @description 1 = callbacks are sent (the default), 0 = paused
                     * @enum {integer}
                     */
                    active?: 0 | 1;
                    /** @description A whole address or name, with the shell wildcards * ? []; a comma list of them, or a regular expression between slashes, which may match anywhere; an item in double quotes is plain text. */
                    filter_to?: string;
                    /** @description A whole address or name, with the shell wildcards * ? []; a comma list of them, or a regular expression between slashes, which may match anywhere; an item in double quotes is plain text. */
                    filter_from?: string;
                    /** @description A whole address or name, with the shell wildcards * ? []; a comma list of them, or a regular expression between slashes, which may match anywhere; an item in double quotes is plain text. */
                    filter_cc?: string;
                    /** @description Part of the subject, with the wildcards * and ?; or a regular expression between slashes, which may match anywhere. Commas, brackets and quotes stand for themselves. */
                    filter_subject?: string;
                    /** @description Any Message-ID of the thread, with or without angle brackets, or a mailhost_thread_id. */
                    filter_thread?: string;
                    /** @description The whole name of an attached file, with the shell wildcards * ? []; a comma list of them, or a regular expression between slashes, which may match anywhere; an item in double quotes is plain text. */
                    filter_file_name?: string;
                    /** @description The full name of one folder, as the API shows it or as the mail server does, with the wildcards * and ?; or a regular expression between slashes, which may match anywhere. */
                    filter_folder_added?: string;
                    /** @description The full name of one folder, as the API shows it or as the mail server does, with the wildcards * and ?; or a regular expression between slashes, which may match anywhere. */
                    filter_folder_removed?: string;
                    /** @description A domain, which stands for its sub-domains too, with the shell wildcards * ? []; a comma list of them, or a regular expression between slashes, which may match anywhere; an item in double quotes is plain text. */
                    filter_to_domain?: string;
                    /** @description A domain, which stands for its sub-domains too, with the shell wildcards * ? []; a comma list of them, or a regular expression between slashes, which may match anywhere; an item in double quotes is plain text. */
                    filter_from_domain?: string;
                    /** @description Part of any text part, attached text files included, of HTML the text that is seen, with the shell wildcards * ? []; or a regular expression between slashes, which may match anywhere. No list. */
                    body_search?: string;
                    /**
                     * @description 1 = callbacks carry the text of the message, text/plain first; what is too large is cut
                     * @enum {integer}
                     */
                    include_body?: 0 | 1;
                    /**
                     * @description with include_body: only body parts of this MIME type; empty or absent = both
                     * @example text/plain
                     * @enum {string}
                     */
                    body_type?: "text/plain" | "text/html" | "";
                    /**
                     * @description 1 = callbacks carry the header fields, decoded, by name (`Subject`, `Message-ID`); `raw` = the header block as text
                     * @enum {string}
                     */
                    include_header?: "0" | "1" | "raw";
                    /**
                     * @description 1 = a callback for every event of a message, those made through this API too; 0 = for its first event alone (the default)
                     * @enum {integer}
                     */
                    receive_all_changes?: 0 | 1;
                    /**
                     * @description 1 = callbacks for drafts too (default 0)
                     * @enum {integer}
                     */
                    receive_drafts?: 0 | 1;
                    /**
                     * @description 1 = also the messages that were there before, newest to oldest: of the user’s email accounts, or at application level of those that are added later (default 0)
                     * @enum {integer}
                     */
                    receive_historical?: 0 | 1;
                };
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                        webhook_id: string;
                        resource_url: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdWebhooksWebhookId: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description id of the webhook
                 * @example 6a1f3c8b2d9e4f5a7b8c9d0e
                 */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    postLiteUsersIdWebhooksWebhookId: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description id of the webhook
                 * @example 6a1f3c8b2d9e4f5a7b8c9d0e
                 */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * Format: uri
                     * @description takes the callbacks: POST with a JSON body, to be answered 200 at once
                     * @example https://app.example.com/mail
                     */
                    callback_url?: string;
                    /**
                     * @description takes one failure notification each time that the webhook’s `failure` becomes true; empty removes it
                     * @example https://app.example.com/webhook-failed
                     */
                    failure_notif_url?: string;
                    /** @description Waits between the attempts of a callback, instead of MAILROOM_WEBHOOK_SCHEDULE: a comma list such as 5s,5m,30m,2h of at most 20, each from 1s to 7d. One attempt more than waits. */
                    retry_schedule?: string;
                    /**
                     * @description 1 = callbacks are sent (the default), 0 = paused
                     * @enum {integer}
                     */
                    active?: 0 | 1;
                    /** @description A whole address or name, with the shell wildcards * ? []; a comma list of them, or a regular expression between slashes, which may match anywhere; an item in double quotes is plain text. */
                    filter_to?: string;
                    /** @description A whole address or name, with the shell wildcards * ? []; a comma list of them, or a regular expression between slashes, which may match anywhere; an item in double quotes is plain text. */
                    filter_from?: string;
                    /** @description A whole address or name, with the shell wildcards * ? []; a comma list of them, or a regular expression between slashes, which may match anywhere; an item in double quotes is plain text. */
                    filter_cc?: string;
                    /** @description Part of the subject, with the wildcards * and ?; or a regular expression between slashes, which may match anywhere. Commas, brackets and quotes stand for themselves. */
                    filter_subject?: string;
                    /** @description Any Message-ID of the thread, with or without angle brackets, or a mailhost_thread_id. */
                    filter_thread?: string;
                    /** @description The whole name of an attached file, with the shell wildcards * ? []; a comma list of them, or a regular expression between slashes, which may match anywhere; an item in double quotes is plain text. */
                    filter_file_name?: string;
                    /** @description The full name of one folder, as the API shows it or as the mail server does, with the wildcards * and ?; or a regular expression between slashes, which may match anywhere. */
                    filter_folder_added?: string;
                    /** @description The full name of one folder, as the API shows it or as the mail server does, with the wildcards * and ?; or a regular expression between slashes, which may match anywhere. */
                    filter_folder_removed?: string;
                    /** @description A domain, which stands for its sub-domains too, with the shell wildcards * ? []; a comma list of them, or a regular expression between slashes, which may match anywhere; an item in double quotes is plain text. */
                    filter_to_domain?: string;
                    /** @description A domain, which stands for its sub-domains too, with the shell wildcards * ? []; a comma list of them, or a regular expression between slashes, which may match anywhere; an item in double quotes is plain text. */
                    filter_from_domain?: string;
                    /** @description Part of any text part, attached text files included, of HTML the text that is seen, with the shell wildcards * ? []; or a regular expression between slashes, which may match anywhere. No list. */
                    body_search?: string;
                    /**
                     * @description 1 = callbacks carry the text of the message, text/plain first; what is too large is cut
                     * @enum {integer}
                     */
                    include_body?: 0 | 1;
                    /**
                     * @description with include_body: only body parts of this MIME type; empty or absent = both
                     * @example text/plain
                     * @enum {string}
                     */
                    body_type?: "text/plain" | "text/html" | "";
                    /**
                     * @description 1 = callbacks carry the header fields, decoded, by name (`Subject`, `Message-ID`); `raw` = the header block as text
                     * @enum {string}
                     */
                    include_header?: "0" | "1" | "raw";
                    /**
                     * @description 1 = a callback for every event of a message, those made through this API too; 0 = for its first event alone (the default)
                     * @enum {integer}
                     */
                    receive_all_changes?: 0 | 1;
                    /**
                     * @description 1 = callbacks for drafts too (default 0)
                     * @enum {integer}
                     */
                    receive_drafts?: 0 | 1;
                    /**
                     * @description 1 = also the messages that were there before, newest to oldest: of the user’s email accounts, or at application level of those that are added later (default 0)
                     * @enum {integer}
                     */
                    receive_historical?: 0 | 1;
                };
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                        resource_url: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    deleteLiteUsersIdWebhooksWebhookId: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description id of the webhook
                 * @example 6a1f3c8b2d9e4f5a7b8c9d0e
                 */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteWebhooks: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"][];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    postLiteWebhooks: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * Format: uri
                     * @description takes the callbacks: POST with a JSON body, to be answered 200 at once
                     * @example https://app.example.com/mail
                     */
                    callback_url: string;
                    /**
                     * @description takes one failure notification each time that the webhook’s `failure` becomes true; empty removes it
                     * @example https://app.example.com/webhook-failed
                     */
                    failure_notif_url?: string;
                    /** @description Waits between the attempts of a callback, instead of MAILROOM_WEBHOOK_SCHEDULE: a comma list such as 5s,5m,30m,2h of at most 20, each from 1s to 7d. One attempt more than waits. */
                    retry_schedule?: string;
                    /**
                     * @description 1 = callbacks are sent (the default), 0 = paused
                     * @enum {integer}
                     */
                    active?: 0 | 1;
                    /** @description A whole address or name, with the shell wildcards * ? []; a comma list of them, or a regular expression between slashes, which may match anywhere; an item in double quotes is plain text. */
                    filter_to?: string;
                    /** @description A whole address or name, with the shell wildcards * ? []; a comma list of them, or a regular expression between slashes, which may match anywhere; an item in double quotes is plain text. */
                    filter_from?: string;
                    /** @description A whole address or name, with the shell wildcards * ? []; a comma list of them, or a regular expression between slashes, which may match anywhere; an item in double quotes is plain text. */
                    filter_cc?: string;
                    /** @description Part of the subject, with the wildcards * and ?; or a regular expression between slashes, which may match anywhere. Commas, brackets and quotes stand for themselves. */
                    filter_subject?: string;
                    /** @description Any Message-ID of the thread, with or without angle brackets, or a mailhost_thread_id. */
                    filter_thread?: string;
                    /** @description The whole name of an attached file, with the shell wildcards * ? []; a comma list of them, or a regular expression between slashes, which may match anywhere; an item in double quotes is plain text. */
                    filter_file_name?: string;
                    /** @description The full name of one folder, as the API shows it or as the mail server does, with the wildcards * and ?; or a regular expression between slashes, which may match anywhere. */
                    filter_folder_added?: string;
                    /** @description The full name of one folder, as the API shows it or as the mail server does, with the wildcards * and ?; or a regular expression between slashes, which may match anywhere. */
                    filter_folder_removed?: string;
                    /** @description A domain, which stands for its sub-domains too, with the shell wildcards * ? []; a comma list of them, or a regular expression between slashes, which may match anywhere; an item in double quotes is plain text. */
                    filter_to_domain?: string;
                    /** @description A domain, which stands for its sub-domains too, with the shell wildcards * ? []; a comma list of them, or a regular expression between slashes, which may match anywhere; an item in double quotes is plain text. */
                    filter_from_domain?: string;
                    /** @description Part of any text part, attached text files included, of HTML the text that is seen, with the shell wildcards * ? []; or a regular expression between slashes, which may match anywhere. No list. */
                    body_search?: string;
                    /**
                     * @description 1 = callbacks carry the text of the message, text/plain first; what is too large is cut
                     * @enum {integer}
                     */
                    include_body?: 0 | 1;
                    /**
                     * @description with include_body: only body parts of this MIME type; empty or absent = both
                     * @example text/plain
                     * @enum {string}
                     */
                    body_type?: "text/plain" | "text/html" | "";
                    /**
                     * @description 1 = callbacks carry the header fields, decoded, by name (`Subject`, `Message-ID`); `raw` = the header block as text
                     * @enum {string}
                     */
                    include_header?: "0" | "1" | "raw";
                    /**
                     * @description 1 = a callback for every event of a message, those made through this API too; 0 = for its first event alone (the default)
                     * @enum {integer}
                     */
                    receive_all_changes?: 0 | 1;
                    /**
                     * @description 1 = callbacks for drafts too (default 0)
                     * @enum {integer}
                     */
                    receive_drafts?: 0 | 1;
                    /**
                     * @description 1 = also the messages that were there before, newest to oldest: of the user’s email accounts, or at application level of those that are added later (default 0)
                     * @enum {integer}
                     */
                    receive_historical?: 0 | 1;
                };
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                        webhook_id: string;
                        resource_url: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteWebhooksWebhookId: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the webhook
                 * @example 6a1f3c8b2d9e4f5a7b8c9d0e
                 */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    postLiteWebhooksWebhookId: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the webhook
                 * @example 6a1f3c8b2d9e4f5a7b8c9d0e
                 */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * Format: uri
                     * @description takes the callbacks: POST with a JSON body, to be answered 200 at once
                     * @example https://app.example.com/mail
                     */
                    callback_url?: string;
                    /**
                     * @description takes one failure notification each time that the webhook’s `failure` becomes true; empty removes it
                     * @example https://app.example.com/webhook-failed
                     */
                    failure_notif_url?: string;
                    /** @description Waits between the attempts of a callback, instead of MAILROOM_WEBHOOK_SCHEDULE: a comma list such as 5s,5m,30m,2h of at most 20, each from 1s to 7d. One attempt more than waits. */
                    retry_schedule?: string;
                    /**
                     * @description 1 = callbacks are sent (the default), 0 = paused
                     * @enum {integer}
                     */
                    active?: 0 | 1;
                    /** @description A whole address or name, with the shell wildcards * ? []; a comma list of them, or a regular expression between slashes, which may match anywhere; an item in double quotes is plain text. */
                    filter_to?: string;
                    /** @description A whole address or name, with the shell wildcards * ? []; a comma list of them, or a regular expression between slashes, which may match anywhere; an item in double quotes is plain text. */
                    filter_from?: string;
                    /** @description A whole address or name, with the shell wildcards * ? []; a comma list of them, or a regular expression between slashes, which may match anywhere; an item in double quotes is plain text. */
                    filter_cc?: string;
                    /** @description Part of the subject, with the wildcards * and ?; or a regular expression between slashes, which may match anywhere. Commas, brackets and quotes stand for themselves. */
                    filter_subject?: string;
                    /** @description Any Message-ID of the thread, with or without angle brackets, or a mailhost_thread_id. */
                    filter_thread?: string;
                    /** @description The whole name of an attached file, with the shell wildcards * ? []; a comma list of them, or a regular expression between slashes, which may match anywhere; an item in double quotes is plain text. */
                    filter_file_name?: string;
                    /** @description The full name of one folder, as the API shows it or as the mail server does, with the wildcards * and ?; or a regular expression between slashes, which may match anywhere. */
                    filter_folder_added?: string;
                    /** @description The full name of one folder, as the API shows it or as the mail server does, with the wildcards * and ?; or a regular expression between slashes, which may match anywhere. */
                    filter_folder_removed?: string;
                    /** @description A domain, which stands for its sub-domains too, with the shell wildcards * ? []; a comma list of them, or a regular expression between slashes, which may match anywhere; an item in double quotes is plain text. */
                    filter_to_domain?: string;
                    /** @description A domain, which stands for its sub-domains too, with the shell wildcards * ? []; a comma list of them, or a regular expression between slashes, which may match anywhere; an item in double quotes is plain text. */
                    filter_from_domain?: string;
                    /** @description Part of any text part, attached text files included, of HTML the text that is seen, with the shell wildcards * ? []; or a regular expression between slashes, which may match anywhere. No list. */
                    body_search?: string;
                    /**
                     * @description 1 = callbacks carry the text of the message, text/plain first; what is too large is cut
                     * @enum {integer}
                     */
                    include_body?: 0 | 1;
                    /**
                     * @description with include_body: only body parts of this MIME type; empty or absent = both
                     * @example text/plain
                     * @enum {string}
                     */
                    body_type?: "text/plain" | "text/html" | "";
                    /**
                     * @description 1 = callbacks carry the header fields, decoded, by name (`Subject`, `Message-ID`); `raw` = the header block as text
                     * @enum {string}
                     */
                    include_header?: "0" | "1" | "raw";
                    /**
                     * @description 1 = a callback for every event of a message, those made through this API too; 0 = for its first event alone (the default)
                     * @enum {integer}
                     */
                    receive_all_changes?: 0 | 1;
                    /**
                     * @description 1 = callbacks for drafts too (default 0)
                     * @enum {integer}
                     */
                    receive_drafts?: 0 | 1;
                    /**
                     * @description 1 = also the messages that were there before, newest to oldest: of the user’s email accounts, or at application level of those that are added later (default 0)
                     * @enum {integer}
                     */
                    receive_historical?: 0 | 1;
                };
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                        resource_url: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    deleteLiteWebhooksWebhookId: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the webhook
                 * @example 6a1f3c8b2d9e4f5a7b8c9d0e
                 */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdWebhooksWebhookIdDeliveries: {
        parameters: {
            query?: {
                /** @description only callbacks that are `pending`, `delivered`, `failed` (given up) or `skipped` (not sent, see reason) */
                state?: "pending" | "delivered" | "failed" | "skipped";
                /** @description only callbacks of this kind */
                kind?: "message" | "status" | "failure" | "sync" | "test";
                /** @description of the API, or a Message-ID */
                message_id?: string;
                /** @description only events of this Unix timestamp in seconds or later */
                timestamp_after?: number;
                /** @description only events of this Unix timestamp in seconds or earlier */
                timestamp_before?: number;
                /** @description most entries of one answer */
                limit?: number;
                /** @description entries to pass over, from the first of the list */
                offset?: number;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description id of the webhook
                 * @example 6a1f3c8b2d9e4f5a7b8c9d0e
                 */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Delivery"][];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteWebhooksWebhookIdDeliveries: {
        parameters: {
            query?: {
                /** @description only callbacks that are `pending`, `delivered`, `failed` (given up) or `skipped` (not sent, see reason) */
                state?: "pending" | "delivered" | "failed" | "skipped";
                /** @description only callbacks of this kind */
                kind?: "message" | "status" | "failure" | "sync" | "test";
                /** @description of the API, or a Message-ID */
                message_id?: string;
                /** @description only events of this Unix timestamp in seconds or later */
                timestamp_after?: number;
                /** @description only events of this Unix timestamp in seconds or earlier */
                timestamp_before?: number;
                /** @description most entries of one answer */
                limit?: number;
                /** @description entries to pass over, from the first of the list */
                offset?: number;
            };
            header?: never;
            path: {
                /**
                 * @description id of the webhook
                 * @example 6a1f3c8b2d9e4f5a7b8c9d0e
                 */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Delivery"][];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    postLiteUsersIdWebhooksWebhookIdDeliveriesDeliveryIdRedeliver: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description id of the webhook
                 * @example 6a1f3c8b2d9e4f5a7b8c9d0e
                 */
                webhook_id: string;
                /**
                 * @description id of the callback, as its `webhook-id` header has it
                 * @example 9c4d2e7f1a8b3c5d6e0f7a1b
                 */
                delivery_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                        /** @description callbacks that are queued again */
                        redelivered: number;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    postLiteWebhooksWebhookIdDeliveriesDeliveryIdRedeliver: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the webhook
                 * @example 6a1f3c8b2d9e4f5a7b8c9d0e
                 */
                webhook_id: string;
                /**
                 * @description id of the callback, as its `webhook-id` header has it
                 * @example 9c4d2e7f1a8b3c5d6e0f7a1b
                 */
                delivery_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                        /** @description callbacks that are queued again */
                        redelivered: number;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdWebhooksWebhookIdRedeliver: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description id of the webhook
                 * @example 6a1f3c8b2d9e4f5a7b8c9d0e
                 */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Redelivery"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    postLiteUsersIdWebhooksWebhookIdRedeliver: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description id of the webhook
                 * @example 6a1f3c8b2d9e4f5a7b8c9d0e
                 */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @description events of this Unix timestamp in seconds or later */
                    from?: number;
                    /** @description events of this Unix timestamp in seconds or earlier */
                    to?: number;
                    /**
                     * @description 1 = only callbacks that failed. Default 0, but 1 when neither from nor to is given
                     * @enum {integer}
                     */
                    failed_only?: 0 | 1;
                };
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                        /** @description callbacks that are queued again */
                        redelivered: number;
                        /** @description false = more of that time are being queued */
                        done: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteWebhooksWebhookIdRedeliver: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the webhook
                 * @example 6a1f3c8b2d9e4f5a7b8c9d0e
                 */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Redelivery"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    postLiteWebhooksWebhookIdRedeliver: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the webhook
                 * @example 6a1f3c8b2d9e4f5a7b8c9d0e
                 */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /** @description events of this Unix timestamp in seconds or later */
                    from?: number;
                    /** @description events of this Unix timestamp in seconds or earlier */
                    to?: number;
                    /**
                     * @description 1 = only callbacks that failed. Default 0, but 1 when neither from nor to is given
                     * @enum {integer}
                     */
                    failed_only?: 0 | 1;
                };
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                        /** @description callbacks that are queued again */
                        redelivered: number;
                        /** @description false = more of that time are being queued */
                        done: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    postLiteUsersIdWebhooksWebhookIdTest: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description id of the webhook
                 * @example 6a1f3c8b2d9e4f5a7b8c9d0e
                 */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Delivery"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    postLiteWebhooksWebhookIdTest: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the webhook
                 * @example 6a1f3c8b2d9e4f5a7b8c9d0e
                 */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Delivery"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdWebhooksWebhookIdSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description id of the webhook
                 * @example 6a1f3c8b2d9e4f5a7b8c9d0e
                 */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                        secret: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    postLiteUsersIdWebhooksWebhookIdSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description id of the webhook
                 * @example 6a1f3c8b2d9e4f5a7b8c9d0e
                 */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                        secret: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteWebhooksWebhookIdSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the webhook
                 * @example 6a1f3c8b2d9e4f5a7b8c9d0e
                 */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                        secret: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    postLiteWebhooksWebhookIdSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the webhook
                 * @example 6a1f3c8b2d9e4f5a7b8c9d0e
                 */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                        secret: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdWebhooksWebhookIdDryRun: {
        parameters: {
            query?: {
                /** @description most entries of one answer */
                limit?: number;
                /** @description only messages of this email account; at application level together with user_id */
                label?: string;
                /** @description only messages of this user */
                user_id?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description id of the webhook
                 * @example 6a1f3c8b2d9e4f5a7b8c9d0e
                 */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description id of the user */
                        account_id: string;
                        /** @description of the email account */
                        label: string;
                        message_id: string;
                        email_message_id: string;
                        subject: string;
                        matched: boolean;
                        filters: {
                            filter: string;
                            matched: boolean;
                            why: string;
                        }[];
                    }[];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteWebhooksWebhookIdDryRun: {
        parameters: {
            query?: {
                /** @description most entries of one answer */
                limit?: number;
                /** @description only messages of this email account; at application level together with user_id */
                label?: string;
                /** @description only messages of this user */
                user_id?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the webhook
                 * @example 6a1f3c8b2d9e4f5a7b8c9d0e
                 */
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description id of the user */
                        account_id: string;
                        /** @description of the email account */
                        label: string;
                        message_id: string;
                        email_message_id: string;
                        subject: string;
                        matched: boolean;
                        filters: {
                            filter: string;
                            matched: boolean;
                            why: string;
                        }[];
                    }[];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdEmailAccountsLabelMessagesMessageIdExplain: {
        parameters: {
            query: {
                /** @description id of the webhook that is asked about */
                webhook_id: string;
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description id of the message, its Message-ID, or the hosted provider’s id
                 * @example 8b1a9953c4611296a827abf8
                 */
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        message_id: string;
                        webhook_id: string;
                        indexed: number;
                        events: {
                            kind: string;
                            first: boolean;
                            folder: string;
                            seen: number;
                            sequence: number;
                        }[];
                        matched: boolean;
                        filters: {
                            filter: string;
                            matched: boolean;
                            why: string;
                        }[];
                        deliveries: components["schemas"]["Delivery"][];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdEmailAccountsLabelFoldersFolderMessagesMessageIdExplain: {
        parameters: {
            query: {
                /** @description id of the webhook that is asked about */
                webhook_id: string;
                /** @description the character between the levels of the folder's name; '/' when absent */
                delimiter?: string;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description full path of the folder; slashes may be sent raw or as %2F
                 * @example INBOX
                 */
                folder: string;
                /**
                 * @description id of the message, its Message-ID, or the hosted provider’s id
                 * @example 8b1a9953c4611296a827abf8
                 */
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        message_id: string;
                        webhook_id: string;
                        indexed: number;
                        events: {
                            kind: string;
                            first: boolean;
                            folder: string;
                            seen: number;
                            sequence: number;
                        }[];
                        matched: boolean;
                        filters: {
                            filter: string;
                            matched: boolean;
                            why: string;
                        }[];
                        deliveries: components["schemas"]["Delivery"][];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdChanges: {
        parameters: {
            query?: {
                /** @description cursor of an earlier answer; absent = from the oldest change that is kept, `now` = what is new from here on */
                since?: string;
                /** @description most entries of one answer */
                limit?: number;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        changes: components["schemas"]["Change"][];
                        cursor: string;
                        /** @description there are more right now */
                        more: boolean;
                        /** @description changes after the cursor are not kept any more */
                        gap: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdContacts: {
        parameters: {
            query?: {
                /** @description count to sort by: `total_count` of all messages with the contact, `indirect_count` of those received from the contact, `direct_count` of those received and replied to */
                sort_by?: "total_count" | "direct_count" | "indirect_count";
                /** @description `desc` = highest count first, `asc` = lowest first */
                sort_order?: "asc" | "desc";
                /** @description most entries of one answer */
                limit?: number;
                /** @description entries to pass over, from the first of the list */
                offset?: number;
            };
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        contacts: components["schemas"]["Contact"][];
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdContactsContactid: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description id of the contact, or its email address
                 * @example ben@example.org
                 */
                contactid: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Contact"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteConnectTokens: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConnectToken"][];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    postLiteConnectTokens: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * Format: uri
                     * @description where the browser goes after the wizard, with the token in the query
                     * @example https://app.example.com/connected
                     */
                    callback_url: string;
                    /**
                     * Format: email
                     * @description address of the mailbox: skips the first step of the wizard
                     * @example anna@example.com
                     */
                    email?: string;
                    /**
                     * @description first name of the user; empty removes it
                     * @example Anna
                     */
                    first_name?: string;
                    /**
                     * @description last name of the user; empty removes it
                     * @example Berg
                     */
                    last_name?: string;
                    /**
                     * @description takes the status callbacks of the email account that the wizard makes; empty = none; not named = that of the user, or what the account has already
                     * @example https://app.example.com/status
                     */
                    status_callback_url?: string;
                };
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                        token: string;
                        resource_url: string;
                        browser_redirect_url: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteConnectTokensToken: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description the connect token
                 * @example k3v9x1m7q2w8e5r4
                 */
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConnectToken"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    deleteLiteConnectTokensToken: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description the connect token
                 * @example k3v9x1m7q2w8e5r4
                 */
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdConnectTokens: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConnectToken"][];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    postLiteUsersIdConnectTokens: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * Format: uri
                     * @description where the browser goes after the wizard, with the token in the query
                     * @example https://app.example.com/connected
                     */
                    callback_url: string;
                    /**
                     * Format: email
                     * @description address of the mailbox: skips the first step of the wizard
                     * @example anna@example.com
                     */
                    email?: string;
                    /**
                     * @description first name of the user; empty removes it
                     * @example Anna
                     */
                    first_name?: string;
                    /**
                     * @description last name of the user; empty removes it
                     * @example Berg
                     */
                    last_name?: string;
                    /**
                     * @description takes the status callbacks of the email account that the wizard makes; empty = none; not named = that of the user, or what the account has already
                     * @example https://app.example.com/status
                     */
                    status_callback_url?: string;
                };
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                        token: string;
                        resource_url: string;
                        browser_redirect_url: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdConnectTokensToken: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description the connect token
                 * @example k3v9x1m7q2w8e5r4
                 */
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConnectToken"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    deleteLiteUsersIdConnectTokensToken: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description the connect token
                 * @example k3v9x1m7q2w8e5r4
                 */
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdEmailAccountsLabelConnectTokens: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConnectToken"][];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    postLiteUsersIdEmailAccountsLabelConnectTokens: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * Format: uri
                     * @description where the browser goes after the wizard, with the token in the query
                     * @example https://app.example.com/connected
                     */
                    callback_url: string;
                    /**
                     * Format: email
                     * @description address of the mailbox: skips the first step of the wizard
                     * @example anna@example.com
                     */
                    email?: string;
                    /**
                     * @description first name of the user; empty removes it
                     * @example Anna
                     */
                    first_name?: string;
                    /**
                     * @description last name of the user; empty removes it
                     * @example Berg
                     */
                    last_name?: string;
                    /**
                     * @description takes the status callbacks of the email account that the wizard makes; empty = none; not named = that of the user, or what the account has already
                     * @example https://app.example.com/status
                     */
                    status_callback_url?: string;
                };
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                        token: string;
                        resource_url: string;
                        browser_redirect_url: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteUsersIdEmailAccountsLabelConnectTokensToken: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description the connect token
                 * @example k3v9x1m7q2w8e5r4
                 */
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConnectToken"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    deleteLiteUsersIdEmailAccountsLabelConnectTokensToken: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the user (lite) or account (2.0)
                 * @example 5f3c8a2b9d4e1f6a7b8c9d0e
                 */
                id: string;
                /**
                 * @description label of the email account or source; 0 is the first one
                 * @example anna::example
                 */
                label: string;
                /**
                 * @description the connect token
                 * @example k3v9x1m7q2w8e5r4
                 */
                token: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteDiscovery: {
        parameters: {
            query: {
                /** @description address of the mailbox */
                email: string;
                /** @description 1 = an array of all settings that were found, best first; 0 = the best alone */
                list?: 0 | 1;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Discovery"] | components["schemas"]["Discovery"][];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteOauthProviders: {
        parameters: {
            query?: {
                /** @description most entries of one answer */
                limit?: number;
                /** @description entries to pass over, from the first of the list */
                offset?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OAuthProvider"][];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    postLiteOauthProviders: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * @description `GMAIL_OAUTH2`, `GMAIL` and `PROVIDER_A_OAUTH2` are the same provider, `MSLIVECONNECT` and `PROVIDER_B_CONNECT` too. The provider is answered under the name that was registered, in capitals
                     * @example GMAIL_OAUTH2
                     * @enum {string}
                     */
                    type: "PROVIDER_A_OAUTH2" | "GMAIL_OAUTH2" | "GMAIL" | "PROVIDER_B_CONNECT" | "MSLIVECONNECT";
                    /**
                     * @description client id of your application at the provider; email accounts name it by this key
                     * @example my-consumer-key
                     */
                    provider_consumer_key: string;
                    /**
                     * @description client secret of your application at the provider
                     * @example my-consumer-secret
                     */
                    provider_consumer_secret: string;
                };
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                        provider_consumer_key: string;
                        resource_url: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getLiteOauthProvidersKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description consumer key of the OAuth provider
                 * @example my-consumer-key
                 */
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OAuthProvider"];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    deleteLiteOauthProvidersKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description consumer key of the OAuth provider
                 * @example my-consumer-key
                 */
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getAppStatusCallbackUrl: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @description empty when there is none */
                        status_callback_url: string;
                        resource_url: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    postAppStatusCallbackUrl: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": {
                    /**
                     * Format: uri
                     * @description takes the status callbacks of every email account that has no URL of its own
                     * @example https://app.example.com/status
                     */
                    status_callback_url: string;
                };
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                        resource_url: string;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    deleteAppStatusCallbackUrl: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getAppLogsWebhooks: {
        parameters: {
            query?: {
                /** @description only callbacks of this webhook */
                webhook_id?: string;
                /** @description id of the user (lite) or account (2.0) */
                account_id?: string;
                /** @description only entries of this Unix timestamp in seconds or later */
                timestamp_after?: number;
                /** @description only entries of this Unix timestamp in seconds or earlier */
                timestamp_before?: number;
                /** @description only entries with this HTTP status or a higher one */
                status_code_from?: number;
                /** @description only entries with this HTTP status or a lower one */
                status_code_to?: number;
                /** @description most entries of one answer */
                limit?: number;
                /** @description entries to pass over, from the first of the list */
                offset?: number;
                /** @description one email account of `account_id` */
                label?: string;
                /** @description only callbacks of this kind */
                kind?: "message" | "status" | "failure" | "sync" | "test";
                /** @description only callbacks that are `pending`, `delivered`, `failed` (given up) or `skipped` (not sent, see reason) */
                state?: "pending" | "delivered" | "failed" | "skipped";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookLogEntry"][];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    postAppLogsWebhooksDeliveryIdRedeliver: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description id of the callback, as its `webhook-id` header has it
                 * @example 9c4d2e7f1a8b3c5d6e0f7a1b
                 */
                delivery_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        success: boolean;
                        /** @description callbacks that are queued again */
                        redelivered: number;
                    };
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            409: components["responses"]["409"];
            413: components["responses"]["413"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    getAppLogsCalls: {
        parameters: {
            query?: {
                /** @description only calls with this HTTP method */
                request_method?: string;
                /** @description the whole path, as it was sent; or a regular expression (RE2) between slashes, which may match anywhere in it, without case */
                request_path?: string;
                /** @description id of the user (lite) or account (2.0) */
                account_id?: string;
                /** @description only entries of this Unix timestamp in seconds or later */
                timestamp_after?: number;
                /** @description only entries of this Unix timestamp in seconds or earlier */
                timestamp_before?: number;
                /** @description only entries with this HTTP status or a higher one */
                status_code_from?: number;
                /** @description only entries with this HTTP status or a lower one */
                status_code_to?: number;
                /** @description most entries of one answer */
                limit?: number;
                /** @description entries to pass over, from the first of the list */
                offset?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CallLogEntry"][];
                };
            };
            400: components["responses"]["400"];
            401: components["responses"]["401"];
            404: components["responses"]["404"];
            429: components["responses"]["429"];
            431: components["responses"]["431"];
            500: components["responses"]["500"];
            503: components["responses"]["503"];
            504: components["responses"]["504"];
        };
    };
    messageCallback: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description names the callback: the same on every attempt, so that one that comes twice is known
                 * @example 9c4d2e7f1a8b3c5d6e0f7a1b
                 */
                "webhook-id": string;
                /**
                 * @description when this attempt was signed: Unix timestamp in seconds
                 * @example 1700000000
                 */
                "webhook-timestamp": string;
                /**
                 * @description one `v1,<base64>` per valid key, with a space between: HMAC-SHA256 of `<webhook-id>.<webhook-timestamp>.<body>`. Keys are the secrets of the webhook (decoded from base64, without `whsec_`), where there is a webhook, and last the API secret
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MessageCallback"];
            };
        };
        responses: {
            /** @description No more: the webhook becomes inactive */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Taken. Answer before anything else is done; the body of the answer is not read further */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Tried again later, by the retry schedule */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    statusCallback: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description names the callback: the same on every attempt, so that one that comes twice is known
                 * @example 9c4d2e7f1a8b3c5d6e0f7a1b
                 */
                "webhook-id": string;
                /**
                 * @description when this attempt was signed: Unix timestamp in seconds
                 * @example 1700000000
                 */
                "webhook-timestamp": string;
                /**
                 * @description one `v1,<base64>` per valid key, with a space between: HMAC-SHA256 of `<webhook-id>.<webhook-timestamp>.<body>`. Keys are the secrets of the webhook (decoded from base64, without `whsec_`), where there is a webhook, and last the API secret
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["StatusCallback"];
            };
        };
        responses: {
            /** @description No more: the webhook becomes inactive */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Taken. Answer before anything else is done; the body of the answer is not read further */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Tried again later, by the retry schedule */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    failureCallback: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description names the callback: the same on every attempt, so that one that comes twice is known
                 * @example 9c4d2e7f1a8b3c5d6e0f7a1b
                 */
                "webhook-id": string;
                /**
                 * @description when this attempt was signed: Unix timestamp in seconds
                 * @example 1700000000
                 */
                "webhook-timestamp": string;
                /**
                 * @description one `v1,<base64>` per valid key, with a space between: HMAC-SHA256 of `<webhook-id>.<webhook-timestamp>.<body>`. Keys are the secrets of the webhook (decoded from base64, without `whsec_`), where there is a webhook, and last the API secret
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["FailureNotification"];
            };
        };
        responses: {
            /** @description No more: the webhook becomes inactive */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Taken. Answer before anything else is done; the body of the answer is not read further */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Tried again later, by the retry schedule */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    syncCallback: {
        parameters: {
            query?: never;
            header: {
                /**
                 * @description names the callback: the same on every attempt, so that one that comes twice is known
                 * @example 9c4d2e7f1a8b3c5d6e0f7a1b
                 */
                "webhook-id": string;
                /**
                 * @description when this attempt was signed: Unix timestamp in seconds
                 * @example 1700000000
                 */
                "webhook-timestamp": string;
                /**
                 * @description one `v1,<base64>` per valid key, with a space between: HMAC-SHA256 of `<webhook-id>.<webhook-timestamp>.<body>`. Keys are the secrets of the webhook (decoded from base64, without `whsec_`), where there is a webhook, and last the API secret
                 * @example v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=
                 */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SyncCallback"];
            };
        };
        responses: {
            /** @description No more: the webhook becomes inactive */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Taken. Answer before anything else is done; the body of the answer is not read further */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Tried again later, by the retry schedule */
            default: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
}
